#!/usr/bin/env bash
# Runs every example under grun: on shared memory, with everything queued, and
# on tcp, with and without TLS, with each number of ranks. It builds programs once. A run takes less than a
# second; one that takes ten minutes hangs, however busy the machine is. The table of gups and
# the network of paramserver are smaller than by default.
#
#	scripts/examples.sh [RANKS...]     default: 1 2 3 4 8
set -euo pipefail
cd "$(dirname "$0")/.."

ranks=("${@:-1 2 3 4 8}")
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
go build -o "$bin/" ./cmd/grun ./examples/...

failed=0 runs=0
try() { # name, ranks, environment..., of which the last is the provider's
	local name=$1 n=$2 log=$bin/log
	shift 2
	runs=$((runs + 1))
	local args=()
	[[ $name != gups ]] || args=(-log2 16)
	[[ $name != paramserver ]] || args=(-hidden 64,32 -steps 60 -accuracy 0.5 -rounds 2 -turns 1)
	if ! env "$@" "$bin/grun" -n "$n" --timeout 10m "$bin/$name" "${args[@]}" </dev/null >"$log" 2>&1; then
		failed=$((failed + 1))
		echo "FAIL: $* grun -n $n $name ${args[*]}"
		sed 's/^/    /' "$log" | tail -30
	fi
}

for main in examples/*/main.go; do
	name=$(basename "$(dirname "$main")")
	started=$SECONDS
	for n in ${ranks[*]}; do
		try "$name" "$n" GRUN_PROVIDER=shm
		try "$name" "$n" GRUN_PROVIDER=shm GRUN_FMA_MAX=0
		try "$name" "$n" GRUN_PROVIDER=tcp
		try "$name" "$n" GRUN_TLS=1 GRUN_PROVIDER=tcp
	done
	echo "$name: $((SECONDS - started)) s"
done
echo "$((runs - failed)) of $runs runs ended well"
((failed == 0))
