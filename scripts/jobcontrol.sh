#!/usr/bin/env bash
# Tests job control at a terminal: grun in the background, Ctrl-Z and fg, Ctrl-C; with ranks here and
# on other hosts, which are shells of this machine.
# script(1) makes the terminal, and bash -i runs this file in it once more.
set -euo pipefail

if [[ "${1:-}" != inside ]]; then
	cd "$(dirname "$0")/.."
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	go build -o "$dir/grun" ./cmd/grun
	export dir
	printf '#!/bin/sh\nfor line; do :; done\nexec sh -c "$line"\n' >"$dir/ssh"
	chmod +x "$dir/ssh"
	# The typing: a line for the program that reads the terminal, and keys for jobs in the
	# foreground, each once its ranks have made their files. It ends with the directory.
	key() { # octal number, files...
		for file in "${@:2}"; do
			while [[ -d "$dir" && ! -e "$dir/$file" ]]; do sleep 0.05; done
		done
		printf "\\$1"
	}
	typed() {
		echo hello
		key 032 foreground.0 foreground.1
		key 032 hosts.0 hosts.1 hosts.2
		key 003 interrupt.0 interrupt.1 interrupt.2
		while [[ -d "$dir" ]]; do sleep 0.05; done
	}
	rc=0
	timeout --kill-after=5 1500 script -qefc "bash --norc --noprofile -i $PWD/scripts/jobcontrol.sh inside" /dev/null \
		< <(typed) >"$dir/log" 2>&1 || rc=$?
	cat "$dir/log"
	grep -q 'all is well' "$dir/log" || exit $((rc ? rc : 1))
	exit 0
fi

set +eu
set -m
PATH=$dir:$PATH
export GRUN_SSH=$dir/ssh XDG_CACHE_HOME=$dir/cache

fail() {
	echo "jobcontrol: $1"
	jobs -l
	for job in $(jobs -p); do kill -KILL "$job"; done
	exit 1
}

# until_there waits for a file that a rank makes.
until_there() { while [[ ! -e "$dir/$1" ]]; do sleep 0.02; done; }

# awaits_stop waits until ranks have stopped, which have written their numbers to files. The ranks run bash: dash
# starts its sleep by vfork, and never counts as stopped if the signal stops the child ahead of its exec.
awaits_stop() { # files...
	for file in "$@"; do
		until [[ "$(awk '{ print $3 }' "/proc/$(cat "$dir/$file")/stat")" == T ]]; do sleep 0.02; done
	done
}

# A job in the background ends, though rank 0 could read the terminal.
grun -n 2 sh -c 'echo "rank $GRUN_RANK ran"' &
wait $! || fail "a job in the background did not end: $?"

# In the background rank 0 waits for input, and in the foreground gets it.
grun -n 2 sh -c 'touch $dir/asks; read line; test $GRUN_RANK = 1 || test "$line" = hello' &
until_there asks
[[ "$(jobs %%)" == *Running* ]] || fail "a job in the background was stopped"
fg %% || fail "the line did not reach rank 0: $?"

# Ctrl-Z stops the ranks with grun, and fg continues them.
grun -n 2 --stdin none bash -c 'echo $$ >$dir/new.$GRUN_RANK; mv $dir/new.$GRUN_RANK $dir/foreground.$GRUN_RANK; while ! test -e $dir/continued; do sleep 0.05; done'
[[ "$(jobs %%)" == *Stopped* ]] || fail "Ctrl-Z did not stop grun"
awaits_stop foreground.0 foreground.1
touch "$dir/continued"
fg %% || fail "a job that was continued did not end well: $?"

# So do ranks of other hosts.
rm "$dir/continued"
grun -H a:2,b -x dir bash -c 'echo $$ >$dir/new.$GRUN_RANK; mv $dir/new.$GRUN_RANK $dir/hosts.$GRUN_RANK; while ! test -e $dir/continued; do sleep 0.05; done'
[[ "$(jobs %%)" == *Stopped* ]] || fail "Ctrl-Z did not stop grun, which has hosts"
awaits_stop hosts.0 hosts.1 hosts.2
touch "$dir/continued"
fg %% || fail "a job on hosts that was continued did not end well: $?"

# Ctrl-C ends them.
(trap : INT; grun -H a:2,b -x dir sh -c 'touch $dir/interrupt.$GRUN_RANK; exec sleep 1000'; echo $? >"$dir/interrupted")
[[ "$(cat "$dir/interrupted")" == 130 ]] || fail "Ctrl-C did not end a job on hosts: $(cat "$dir/interrupted")"

# Ranks print although the terminal stops output from the background.
stty tostop
grun -n 2 sh -c 'echo "rank $GRUN_RANK prints"' || fail "a job in the foreground did not print: $?"
grun -n 2 sh -c 'echo "rank $GRUN_RANK prints"' &
wait $!
[[ "$(jobs %%)" == *Stopped* ]] || fail "stty tostop did not stop a job in the background"
fg %% || fail "a job that printed in the background did not end well: $?"
stty -tostop

echo all is well
