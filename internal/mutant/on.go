//go:build mutants

package mutant

import (
	"bytes"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// The environment chooses one mutant by its name.
var chosen = os.Getenv("GOPGAS_MUTANT")

// See the constants of a build without mutants.
var (
	FlagBeforeData        = chosen == "flag_before_data"
	FlushWithoutBarrier   = chosen == "flush_without_barrier"
	MissingWaiterCheck    = chosen == "missing_waiter_check"
	UpdateInTwoSteps      = chosen == "update_in_two_steps"
	SignalAheadOfPuts     = chosen == "signal_ahead_of_puts"
	SignalBeforePut       = chosen == "signal_before_put"
	TornPut               = chosen == "torn_put"
	StaleRead             = chosen == "stale_read"
	AccumulateLate        = chosen == "accumulate_late"
	FlushOnePeer          = chosen == "flush_one_peer"
	QueueFlushesNothing   = chosen == "queue_flushes_nothing"
	QueueSharesConnection = chosen == "queue_shares_connection"
	EpochOfOnePeer        = chosen == "epoch_of_one_peer"
	StartWithoutPost      = chosen == "start_without_post"
	DetachForgetsLeases   = chosen == "detach_forgets_leases"
	OpenAnyGeneration     = chosen == "open_any_generation"
	LocateAnyWindow       = chosen == "locate_any_window"
	StoreWithoutRing      = chosen == "store_without_ring"
	LockHandedToAll       = chosen == "lock_handed_to_all"
	LookOnce              = chosen == "look_once"
)

// Later runs f after the caller has gone on.
func Later(f func()) {
	go func() {
		time.Sleep(time.Millisecond)
		f()
	}()
}

// Pause gives other ranks the time to see what is half done.
func Pause() { time.Sleep(50 * time.Microsecond) }

// reads holds what each place returned to the last read that was not stale.
var reads struct {
	sync.Mutex
	last map[any][]byte
}

// Stale replaces a third of the reads of a place by an earlier one.
func Stale(place any, dst []byte) {
	reads.Lock()
	defer reads.Unlock()
	if last, ok := reads.last[place]; ok && len(last) == len(dst) && rand.IntN(3) == 0 {
		copy(dst, last)
		return
	}
	if reads.last == nil {
		reads.last = map[any][]byte{}
	}
	reads.last[place] = bytes.Clone(dst)
}
