#!/usr/bin/env bash
# Fuzzes every decoder of bytes from outside, one after another.
#
#	scripts/fuzz.sh [TIMES]    for each fuzz test; default 50000x. A time such
# as 10s works too, but go test now and then calls its own end a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:-50000x} found=0
while IFS=: read -r file line; do
	name=${line#func } name=${name%%(*}
	found=$((found + 1))
	echo "fuzz $name in $(dirname "$file") for $times"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$times" "./$(dirname "$file")"
done < <(grep -r --include='*_test.go' '^func Fuzz' . | sed 's|^\./||' | sort)
((found > 0)) || { echo "no fuzz tests found"; exit 1; }
