#!/usr/bin/env bash
# Runs examples/paramserver on an emulated machine with a software RDMA device (see
# internal/tools/vm). The row "registered per tensor" of its table shows the cost of
# registration; RUNS=5 further runs repeat it and the row that it is compared with, 9 turns of each. Not part
# of .ci/run: it takes minutes.
#
#	scripts/ibv-paramserver.sh
#	ALL=0 scripts/ibv-paramserver.sh     # the further runs alone
#
# vm ends the machine when it prints nothing for TIMEOUT=900 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:--buildvcs=false}"
work=.cache/vm
bin=$PWD/$work/paramserver
mkdir -p "$bin"

CGO_ENABLED=0 go build -o "$work/vm" ./internal/tools/vm
"$work/vm" -prepare # libibverbs' headers, for the build below
CGO_ENABLED=0 go build -o "$bin/" ./cmd/grun
CGO_ENABLED=1 go build -tags ibverbs -o "$bin/" ./examples/paramserver

cat >"$bin/run" <<'END'
#!/bin/sh
# In the machine. $1: the folder of the programs. $2: further runs. $3: 0 for these alone.
set -e
bin=$1 runs=$2 all=$3
job() { "$bin/grun" -n 2 --provider ibv --start-timeout 10m --timeout 15m "$@"; }
learn="-hidden 16,16 -steps 20 -accuracy 0.15 -rounds 2"
[ "$all" = 0 ] || job --stats "$bin/paramserver" $learn -turns 3
for i in $(seq "$runs"); do
	job "$bin/paramserver" $learn -mode sync -rows "per tensor" -turns 9
done
END
exec "$work/vm" -timeout "${TIMEOUT:-900}s" -env GOPGAS_PATIENCE=10 -bin "$bin/grun" -bin "$bin/paramserver" -- sh "$bin/run" "$bin" "${RUNS:-5}" "${ALL:-1}"
