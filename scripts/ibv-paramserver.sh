#!/usr/bin/env bash
# Runs examples/paramserver on an emulated machine with a software RDMA device (see
# internal/tools/vm). The row "registered per tensor" of its table shows the cost of
# registration. Not part of .ci/run: it takes three minutes.
#
#	scripts/ibv-paramserver.sh
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
# In the machine. $1: the folder of the programs.
exec "$1/grun" -n 2 --provider ibv --timeout 10m --stats "$1/paramserver" -hidden 16,16 -steps 20 -accuracy 0.15 -rounds 2 -turns 3
END
exec "$work/vm" -timeout "${TIMEOUT:-900}s" -env GOPGAS_PATIENCE=10 -bin "$bin/grun" -bin "$bin/paramserver" -- sh "$bin/run" "$bin"
