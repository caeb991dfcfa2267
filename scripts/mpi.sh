#!/usr/bin/env bash
# Runs ranks under the process managers of MPI, and programs of MPI under grun. It installs
# MPICH and Open MPI if they are missing, by apt and as root (or by a sudo without a password).
#
#	scripts/mpi.sh [FLAGS OF GO TEST...]
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v mpiexec.hydra >/dev/null || missing+=(mpich)
command -v mpicc.mpich >/dev/null || missing+=(mpich libmpich-dev)
command -v mpirun.openmpi >/dev/null || missing+=(openmpi-bin)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
((${#missing[@]} == 0)) || scripts/install.sh "${missing[@]}"
GOPGAS_MPI=1 go test -count=1 -timeout "${LIMIT:-60m}" -run 'MPI|Mpi|ProcessManager' "$@" ./internal/pmi ./launcher ./cmd/grun ./runtime
