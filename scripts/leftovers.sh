#!/usr/bin/env bash
# Finds the leftovers of jobs: processes of a job that still run, and files in
# /dev/shm. With a marker (NAME=value) only processes with that variable in their
# environment count.
#
#	scripts/leftovers.sh [MARKER]
set -euo pipefail

left=0
for dir in /proc/[0-9]*; do
	[[ ${dir#/proc/} == "$$" ]] && continue
	# Gone meanwhile, another user's, or a zombie: nothing to read.
	vars=$(tr '\0' '\n' 2>/dev/null <"$dir/environ") || continue
	grep -q '^GRUN_JOB_ID=' <<<"$vars" || continue
	if [[ -z ${1:-} ]] || grep -qxF "$1" <<<"$vars"; then
		echo "process ${dir#/proc/} of job $(grep '^GRUN_JOB_ID=' <<<"$vars"): $(tr '\0' ' ' 2>/dev/null <"$dir/cmdline" || true)"
		left=$((left + 1))
	fi
done
for file in /dev/shm/*gopgas* /dev/shm/*grun*; do
	if [[ -e $file ]]; then
		echo "file $file"
		left=$((left + 1))
	fi
done
((left == 0)) || { echo "$left things left behind"; exit 1; }
echo "nothing left behind"
