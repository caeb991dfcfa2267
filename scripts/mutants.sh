#!/bin/sh
# Builds the litmus tests against each mutant of internal/mutant and expects
# them to fail. A mutant that survives means that a promise of
# docs/memory-model.md is not held by any test.
set -u
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
survived=0

# try TAG TEST...: at least one of the tests must fail under the tag, at one of some
# attempts: a mutant shows if ranks run at the same time, which they seldom do on a
# machine whose cores other programs need as well.
try() {
	tag=$1
	shift
	tests=$(echo "$*" | tr ' ' '|')
	if ! go test -c -tags "$tag" -o "$out/litmus.test" ./litmus; then
		echo "mutant $tag does not build"
		survived=1
		return
	fi
	for attempt in 1 2 3 4 5 6 7 8; do
		(cd litmus && "$out/litmus.test" -test.run "^($tests)\$" -test.failfast -test.timeout 60m) >"$out/log" 2>&1
		killers=$(sed -n 's/^--- FAIL: \([A-Za-z]*\).*/\1/p' "$out/log" | sort -u | tr '\n' ' ')
		[ -z "$killers" ] || break
		echo "mutant $tag survived attempt $attempt"
	done
	if [ -n "$killers" ]; then
		echo "mutant $tag is caught by $killers"
	else
		echo "mutant $tag SURVIVED $*"
		tail -n 5 "$out/log"
		survived=1
	fi
}

try mutant_flag_before_data TestMessagePassing
try mutant_flush_without_barrier TestFlagElsewhere TestStoreBuffering
try mutant_missing_waiter_check TestRingAtEveryMoment TestWakeUp
try mutant_update_in_two_steps TestAccumulate TestMixedAtomics
exit $survived
