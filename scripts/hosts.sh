#!/usr/bin/env bash
# Runs the tests of jobs on several hosts. The hosts are namespaces of this machine, so the
# tests need root, or a sudo without a password. They mostly wait: more of them than there
# are cores run at once. With GOPGAS_SOAK=1 the long faults run as well.
#
#	scripts/hosts.sh [FLAGS OF GO TEST...]
set -euo pipefail
cd "$(dirname "$0")/.."

((EUID == 0)) || exec sudo -n env "PATH=$PATH" "HOME=$HOME" "GOFLAGS=${GOFLAGS:-}" "GOPGAS_SOAK=${GOPGAS_SOAK:-}" "LIMIT=${LIMIT:-}" scripts/hosts.sh "$@"
PATH=$PATH:/usr/sbin:/sbin
missing=()
command -v ip >/dev/null || missing+=(iproute2)
command -v ssh >/dev/null || missing+=(openssh-client)
command -v sshd >/dev/null || missing+=(openssh-server)
((${#missing[@]} == 0)) || scripts/install.sh "${missing[@]}"
# Those with Slurm in their names run by scripts/slurm.sh.
GOPGAS_HOSTS=1 go test -count=1 -skip Slurm -parallel 4 -timeout "${LIMIT:-60m}" "$@" ./internal/tools/hosts ./faults
