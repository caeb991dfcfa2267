#!/usr/bin/env bash
# Fuzzes every decoder of bytes from outside, one after the other.
#
#	scripts/fuzz.sh [TIME]     for each fuzz test; default 10s
set -euo pipefail
cd "$(dirname "$0")/.."

time=${1:-10s} found=0
while IFS=: read -r file line; do
	name=${line#func } name=${name%%(*}
	found=$((found + 1))
	echo "fuzz $name in $(dirname "$file") for $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "./$(dirname "$file")"
done < <(grep -r --include='*_test.go' '^func Fuzz' . | sed 's|^\./||' | sort)
((found > 0)) || { echo "no fuzz tests found"; exit 1; }
