#!/usr/bin/env bash
# Finds the leftovers of jobs: processes of a job that still run, and files in
# /dev/shm. With a marker (NAME=value) only processes with that variable in their
# environment count. Killed processes of a busy machine may still be ending: it looks for 30 seconds.
#
#	scripts/leftovers.sh [MARKER]
set -euo pipefail

left() { # marker
	local dir vars file
	for dir in /proc/[0-9]*; do
		# This script, and the subshell in which this function runs.
		[[ ${dir#/proc/} == "$$" || ${dir#/proc/} == "$BASHPID" ]] && continue
		# Gone meanwhile, another user's, or a zombie: nothing to read.
		vars=$(tr '\0' '\n' 2>/dev/null <"$dir/environ") || continue
		grep -q '^GRUN_JOB_ID=' <<<"$vars" || continue
		if [[ -z $1 ]] || grep -qxF "$1" <<<"$vars"; then
			echo "process ${dir#/proc/} of job $(grep '^GRUN_JOB_ID=' <<<"$vars"): $(tr '\0' ' ' 2>/dev/null <"$dir/cmdline" || true)"
		fi
	done
	for file in /dev/shm/*gopgas* /dev/shm/*grun*; do
		[[ ! -e $file ]] || echo "file $file"
	done
}
until things=$(left "${1:-}") && [[ -z $things ]]; do
	((SECONDS < 30)) || { echo "$things"; echo "left behind"; exit 1; }
	sleep 1
done
echo "nothing left behind"
