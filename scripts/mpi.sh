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
if ((${#missing[@]})); then
	root=()
	((EUID == 0)) || root=(sudo -n)
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
	"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}"
fi
GOPGAS_MPI=1 go test -count=1 -timeout "${LIMIT:-60m}" -run 'MPI|Mpi|ProcessManager' "$@" ./internal/pmi ./launcher ./cmd/grun ./runtime
