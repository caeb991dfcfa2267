#!/usr/bin/env bash
# Runs the tests of jobs under Slurm: Debian's slurmctld, slurmd and munge in hosts that are
# namespaces of this machine. So the tests need root, or a sudo without a password. They
# mostly wait: more of them than there are cores run at once. With GOPGAS_SOAK=1 the time
# limit and the failure of a node run as well, which Slurm sees after a minute or more.
#
#	scripts/slurm.sh [FLAGS OF GO TEST...]
set -euo pipefail
cd "$(dirname "$0")/.."

((EUID == 0)) || exec sudo -n env "PATH=$PATH" "HOME=$HOME" "GOFLAGS=${GOFLAGS:-}" "GOPGAS_SOAK=${GOPGAS_SOAK:-}" "LIMIT=${LIMIT:-}" scripts/slurm.sh "$@"
PATH=$PATH:/usr/sbin:/sbin
missing=()
command -v ip >/dev/null || missing+=(iproute2)
command -v munged >/dev/null || missing+=(munge)
command -v slurmctld >/dev/null || missing+=(slurmctld)
command -v slurmd >/dev/null || missing+=(slurmd)
command -v srun >/dev/null || missing+=(slurm-client)
((${#missing[@]} == 0)) || scripts/install.sh "${missing[@]}"
GOPGAS_HOSTS=1 go test -count=1 -run Slurm -parallel 4 -timeout "${LIMIT:-60m}" "$@" ./internal/tools/hosts ./faults
