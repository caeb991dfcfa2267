#!/bin/sh
# Builds tests with the switches of internal/mutant, and expects them to fail with each of the
# switches in turn. A mutant that survives means that no test holds a promise of
# docs/memory-model.md.
set -u
cd "$(dirname "$0")/.." || exit 2
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
survived=0

go test -c -tags mutants -o "$out/litmus.test" ./litmus &&
	go test -c -tags mutants -o "$out/fabric.test" ./internal/fabric || exit 2

# try BINARY FOLDER MUTANT TEST...: at least one of the tests must fail, at one of some attempts: a
# mutant shows if ranks run at the same time, which they seldom do on a machine whose cores
# other programs need as well. Some mutants have a rank sleep on: its watchdog waits 3 seconds here.
try() {
	binary=$1 folder=$2 mutant=$3
	shift 3
	tests=$(echo "$*" | tr ' ' '|')
	for attempt in 1 2 3 4 5 6 7 8; do
		(cd "$folder" && GOPGAS_MUTANT=$mutant GOPGAS_PATIENCE=0.1 "$out/$binary" -test.run "^($tests)\$" -test.failfast -test.timeout 60m) >"$out/log" 2>&1
		killers=$(sed -n 's/^--- FAIL: \([A-Za-z]*\).*/\1/p' "$out/log" | sort -u | tr '\n' ' ')
		[ -z "$killers" ] || break
		echo "mutant $mutant survived attempt $attempt"
	done
	if [ -n "$killers" ]; then
		echo "mutant $mutant is caught by $killers"
	else
		echo "mutant $mutant SURVIVED $*"
		tail -n 5 "$out/log"
		survived=1
	fi
}

litmus() { try litmus.test litmus "$@"; }

litmus flag_before_data TestMessagePassing
litmus flush_without_barrier TestFlagElsewhere TestStoreBuffering
litmus missing_waiter_check TestRingAtEveryMoment TestWakeUp
litmus update_in_two_steps TestAccumulate TestMixedAtomics
litmus signal_ahead_of_puts TestSignalBehindEarlierPuts
litmus signal_before_put TestSignalInAWord
litmus torn_put TestPutsOfEightBytesAreWhole
litmus stale_read TestIndependentReadsAgreeOnOneOrder
litmus accumulate_late TestAccumulateInOrder TestStartedAccumulatesInOrder
litmus flush_one_peer TestJobFlushAll
litmus queue_flushes_nothing TestQueueFlushAll
litmus epoch_of_one_peer TestEpochs
litmus start_without_post TestEpochs
litmus detach_forgets_leases TestLeaseKeepsDetachedMemory
litmus open_any_generation TestStalePointersLeadNowhere
litmus locate_any_window TestStalePointersLeadNowhere
litmus store_without_ring TestAtomicEndsAWaitForItsElement
litmus lock_handed_to_all TestLock TestLockGivenUp
litmus look_once TestPutEndsAWaitForItsElement
try fabric.test internal/fabric queue_shares_connection TestFlushOfAQueueConcernsItsPostsOnly
exit $survived
