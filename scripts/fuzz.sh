#!/usr/bin/env bash
# Fuzzes every decoder of bytes from outside, as many at a time as there are cores.
#
#	scripts/fuzz.sh [TIMES]    for each fuzz test; default 50000x. A time such
# as 10s works too, but go test now and then calls its own end a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

# fuzz runs a fuzz test and shows its output when it has ended.
fuzz() { # times, folder, name
	local out rc=0
	out=$(go test -run '^$' -fuzz "^$3\$" -fuzztime "$1" -parallel 1 "./$2" 2>&1) || rc=$?
	printf 'fuzz %s in %s for %s\n%s\n' "$3" "$2" "$1" "$out"
	return "$rc"
}
export -f fuzz

tests=$(grep -r --include='*_test.go' '^func Fuzz' . | sed -E 's|^\./(.*)/[^/]*:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort)
[[ $tests ]] || { echo "no fuzz tests found"; exit 1; }
xargs -P "$(nproc)" -n 2 bash -c 'fuzz "$@"' bash "${1:-50000x}" <<<"$tests"
