#!/usr/bin/env bash
# Tests job control at a terminal: grun in the background, Ctrl-Z and fg.
# script(1) makes the terminal, and bash -i runs this file in it once more.
set -euo pipefail

if [[ "${1:-}" != inside ]]; then
	cd "$(dirname "$0")/.."
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	go build -o "$dir/grun" ./cmd/grun
	export dir
	# The typing: a line for the program that reads the terminal, and Ctrl-Z for a job
	# in the foreground. It ends with the directory.
	typed() {
		echo hello
		while [[ -d "$dir" && ! -e "$dir/foreground" ]]; do sleep 0.05; done
		printf '\032'
		while [[ -d "$dir" ]]; do sleep 0.05; done
	}
	rc=0
	timeout --kill-after=5 50 script -qefc "bash --norc --noprofile -i $PWD/scripts/jobcontrol.sh inside" /dev/null \
		< <(typed) >"$dir/log" 2>&1 || rc=$?
	cat "$dir/log"
	grep -q 'all is well' "$dir/log" || exit $((rc ? rc : 1))
	exit 0
fi

set +eu
set -m
PATH=$dir:$PATH

fail() {
	echo "jobcontrol: $1"
	jobs -l
	for job in $(jobs -p); do kill -KILL "$job"; done
	exit 1
}

# until_there waits for a file that a rank makes.
until_there() { while [[ ! -e "$dir/$1" ]]; do sleep 0.02; done; }

# ranks_stopped counts the stopped children of the current job's grun.
ranks_stopped() { cat /proc/[0-9]*/stat 2>/dev/null | awk -v grun="$(jobs -p %%)" '$4 == grun && $3 == "T"' | wc -l; }

# A job in the background ends, though rank 0 could read the terminal.
grun -n 2 sh -c 'echo "rank $GRUN_RANK ran"' &
wait $! || fail "a job in the background did not end: $?"

# In the background rank 0 waits for input, and in the foreground gets it.
grun -n 2 sh -c 'touch $dir/asks; read line; test $GRUN_RANK = 1 || test "$line" = hello' &
until_there asks
[[ "$(jobs %%)" == *Running* ]] || fail "a job in the background was stopped"
fg %% || fail "the line did not reach rank 0: $?"

# Ctrl-Z stops the ranks with grun, and fg continues them.
grun -n 2 --stdin none sh -c 'touch $dir/foreground; while ! test -e $dir/continued; do sleep 0.05; done'
[[ "$(jobs %%)" == *Stopped* ]] || fail "Ctrl-Z did not stop grun"
while (($(ranks_stopped) != 2)); do sleep 0.02; done
touch "$dir/continued"
fg %% || fail "a job that was continued did not end well: $?"

# Ranks print although the terminal stops output from the background.
stty tostop
grun -n 2 sh -c 'echo "rank $GRUN_RANK prints"' || fail "a job in the foreground did not print: $?"
grun -n 2 sh -c 'echo "rank $GRUN_RANK prints"' &
wait $!
[[ "$(jobs %%)" == *Stopped* ]] || fail "stty tostop did not stop a job in the background"
fg %% || fail "a job that printed in the background did not end well: $?"
stty -tostop

echo all is well
