#!/usr/bin/env bash
# Compares collective calls with those of Open MPI and MPICH (bench/peers/c/coll.c), as many
# of the two as are installed: all take turns, collective by collective, so that
# they see the same machine. It prints tables in Markdown. If FIGURES is set, it
# keeps the measurements in that file, one line each.
#
#	scripts/collectives.sh [TURNS [RANKS [PROVIDERS]]]     default: 3 "2 4 8" "shm tcp"
#	NAMES="allreduce scan" SIZES=8,1M TIME=200 LIMIT=60 scripts/collectives.sh 5 2 shm
#
# TIME is in milliseconds, for a size; LIMIT in seconds, for a run of a program. Our
# ranks are always bound to cores. Those of the MPIs are, too, unless they outnumber the
# cores: binding does not help them then.
set -euo pipefail
cd "$(dirname "$0")/.."

turns=${1:-3} ranks=${2:-2 4 8} providers=${3:-shm tcp}
names=${NAMES:-barrier broadcast reduce allreduce gather allgather scatter reducescatter alltoall scan neighbor_alltoall}
millis=${TIME:-60} limit=${LIMIT:-60}
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
CGO_ENABLED=0 go build -o "$bin/" ./cmd/grun ./bench
peers=()
for mpi in openmpi mpich; do
	if command -v "mpicc.$mpi" >/dev/null; then
		"mpicc.$mpi" -O2 -Wall -Wextra -Werror -o "$bin/coll.$mpi" bench/peers/c/coll.c
		peers+=("$mpi")
	fi
done
((${#peers[@]})) || echo "neither mpicc.openmpi nor mpicc.mpich is here: nothing to compare with" >&2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# sizes prints the sizes of a collective: the blocks of all ranks together are as large as vectors.
sizes() {
	case $1 in
	gather | allgather | scatter | alltoall | neighbor_alltoall) echo "${SIZES:-8,4K,64K,1M}" ;;
	*) echo "${SIZES:-8,4K,64K,1M,16M}" ;;
	esac
}

bytes() { sed 's/K/*1024/g; s/M/*1048576/g; s/,/\n/g' <<<"$1" | bc | paste -sd, -; }

ours() { # provider ranks name
	local names="coll_$3_arena coll_$3_slices"
	[[ $3 == barrier ]] && names=coll_barrier
	# shellcheck disable=SC2086 # names are several
	"$bin/grun" -n "$2" --bind-to core --provider "$1" --timeout "${limit}s" "$bin/bench" $names -size "$(sizes "$3")" -time "${millis}ms" -json
}

openmpi() {
	local flags=(--bind-to core) btl=(--mca btl self,vader)
	(($2 > $(nproc))) && flags=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
	[[ $1 == tcp ]] && btl=(--mca btl self,tcp --mca btl_tcp_if_include lo)
	timeout "$limit" mpirun.openmpi -np "$2" "${flags[@]}" --mca pml ob1 "${btl[@]}" "$bin/coll.openmpi" "$(seconds)" "$(bytes "$(sizes "$3")")" "coll_$3"
}

mpich() {
	local flags=(-bind-to core) vars=()
	(($2 > $(nproc))) && flags=()
	[[ $1 == tcp ]] && vars=(UCX_TLS=self,tcp UCX_NET_DEVICES=lo MPIR_CVAR_NOLOCAL=1)
	env "${vars[@]}" timeout "$limit" mpirun.mpich -np "$2" "${flags[@]}" "$bin/coll.mpich" "$(seconds)" "$(bytes "$(sizes "$3")")" "coll_$3"
}

seconds() { echo "scale=3; $millis/1000" | bc; }

failed() { echo "$1 failed or took too long in turn $turn: $(tail -n 1 "$bin/errors")" >&2; }

# A run that does not finish in time counts with the sizes that it has measured.
figures=${FIGURES:-$bin/figures}
for ((turn = 1; turn <= turns; turn++)); do
	for n in $ranks; do
		for provider in $providers; do
			for name in $names; do
				for who in ours ${peers[@]+"${peers[@]}"}; do
					("$who" "$provider" "$n" "$name" 2>"$bin/errors" || failed "$who $provider $n $name") | sed "s/^/$who $provider $turn /"
				done
			done
		done
	done
done >"$figures"
awk -f scripts/collectives.awk "$figures"
