#!/usr/bin/env bash
# Compares a pipe's ping-pong on mapped memory with a C program's in the same layout
# (bench/c/pingpong.c): both pinned to the first two cores, in turns, so that both
# see the same machine. Open MPI, if it is installed, does the same by put and flush
# (bench/peers/c/rma.c). It prints the medians over the turns and their ratios.
#
#	scripts/pingpong.sh [SIZE [TURNS]]     default: 8 15
set -euo pipefail
cd "$(dirname "$0")/.."

size=${1:-8} turns=${2:-15}
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
CGO_ENABLED=0 go build -o "$bin/" ./cmd/grun ./bench
gcc -O2 -Wall -Wextra -Werror -o "$bin/pingpong" bench/c/pingpong.c
if command -v mpicc.openmpi >/dev/null; then
	mpicc.openmpi -O2 -Wall -Wextra -Werror -o "$bin/rma" bench/peers/c/rma.c
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

for ((i = 0; i < turns; i++)); do
	"$bin/pingpong" "$size" 0.2
	if [[ -x $bin/rma ]]; then
		mpirun.openmpi -np 2 --bind-to core --mca pml ob1 --mca btl self,vader --mca osc sm "$bin/rma" 0.2 "$size" put_notify_latency
	fi
	"$bin/grun" -n 2 --bind-to core --provider shm --timeout 60s "$bin/bench" rpipe_latency rpipe_latency_floor -size "$size" -time 200ms -json
done | awk -v size="$size" '
	match($0, /"benchmark":"[a-z_]+"/) {
		name = substr($0, RSTART + 13, RLENGTH - 14)
		match($0, /"median":[0-9.e+-]+/)
		n[name]++
		at[name, n[name]] = substr($0, RSTART + 9, RLENGTH - 9) + 0
	}
	function median(name, i, j, v, k) {
		k = n[name]
		for (i = 1; i <= k; i++)
			for (j = i; j > 1 && at[name, j] < at[name, j - 1]; j--) {
				v = at[name, j]; at[name, j] = at[name, j - 1]; at[name, j - 1] = v
			}
		return at[name, int((k + 1) / 2)]
	}
	END {
		c = median("pingpong_c")
		printf "# %d bytes, one way, medians of %d turns\n", size, n["pingpong_c"]
		for (name in n) printf "%-24s %8.4f us  %5.2f of C\n", name, median(name), median(name) / c
	}' | sort
