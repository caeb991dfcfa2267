package litmus

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

// A litmus is a program of a few ranks.
type litmus struct {
	ranks int
	body  testjob.Body
	owner bool // uses the CPU's atomics on its own memory
}

// programs are the litmus tests that run between processes as well.
func programs() map[string]litmus {
	return map[string]litmus{
		"message passing":              {ranks: 2, body: messagePassing},
		"signal behind puts":           {ranks: 2, body: signalBehindPuts},
		"signal in a word":             {ranks: 2, body: signalInAWord},
		"flag elsewhere":               {ranks: 3, body: flagElsewhere},
		"epochs":                       {ranks: 3, body: epochsInTurn},
		"other windows":                {ranks: 3, body: flushOtherWindows},
		"all targets":                  {ranks: 4, body: flushJob},
		"queue":                        {ranks: 4, body: flushQueue},
		"store buffering":              {ranks: 2, body: storeBuffering},
		"fence":                        {ranks: 4, body: fence},
		"order":                        {ranks: 2, body: order},
		"source reuse":                 {ranks: 2, body: sourceReuse},
		"accumulate":                   {ranks: 3, body: accumulate},
		"accumulate in order":          {ranks: 2, body: accumulateInOrder},
		"started accumulates in order": {ranks: 2, body: startedAccumulatesInOrder},
		"mixed atomics":                {ranks: 3, body: mixedAtomics, owner: true},
		"lock":                         {ranks: 3, body: lock},
		"lock given up":                {ranks: 3, body: lockGivenUp},
		"element as flag":              {ranks: 2, body: elementAsFlag},
		"whole puts":                   {ranks: 2, body: wholePuts},
		"independent reads":            {ranks: 4, body: independentReads},
		"atomic as flag":               {ranks: 2, body: atomicAsFlag},
		"put as flag":                  {ranks: 2, body: putAsFlag},
		"lease":                        {ranks: 2, body: leaseKeepsMemory},
		"stale pointers":               {ranks: 2, body: stalePointers},
		"wake-up":                      {ranks: 2, body: wakeUp},
	}
}

func TestMain(m *testing.M) {
	bodies := map[string]testjob.Body{}
	for name, l := range programs() {
		bodies[name] = l.body
	}
	testjob.Main(m, bodies)
}

// everywhere runs a program on every transport in this process, and between
// processes.
func everywhere(t *testing.T, name string) {
	l := programs()[name]
	testjob.EveryTransport(t, l.ranks, func(t *testing.T, c testjob.Config) {
		l.skipUnder(t, c.Atomics)
		c.Run(t, l.body)
	})
	if testwatch.Race {
		return // the detector looks at one process
	}
	for _, j := range testjob.Processes(l.ranks) {
		t.Run(j.String(), func(t *testing.T) {
			l.skipUnder(t, j.Atomics)
			j.Run(t, name)
		})
	}
}

// late runs a program where requests and completions come late, so that a flush which waits for
// too little shows.
func late(t *testing.T, name string) {
	plan := faulty.Plan{Seed: 1, DelayStarts: 0.3, DelayCompletions: 0.1, MaxDelay: time.Millisecond, MaxPolls: 1 << 20}
	l := programs()[name]
	for _, c := range []testjob.Config{{Provider: "tcp", Ranks: l.ranks}, {Provider: "loop", Queued: true, Ranks: l.ranks}} {
		t.Run("late "+c.String(), func(t *testing.T) {
			c.Run(t, l.body, runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, plan) }))
		})
	}
}

// skipUnder skips a case without a promise on devices that apply all atomics.
func (l litmus) skipUnder(t *testing.T, atomics string) {
	if l.owner && atomics == "nic" {
		t.Skip("the CPU must not touch words that devices update")
	}
}

// rounds returns the number of repetitions of a program. The race detector needs few: it
// recognizes a race whichever access comes first.
func rounds(n int) int {
	if testjob.Soak() {
		return 50 * n
	}
	return testwatch.Rounds(n)
}

func allocate[T any](ctx context.Context, r *testjob.Rank, n int) *window.Window[T] {
	w, err := window.Allocate[T](ctx, r.World, n)
	r.NoError(err)
	return w
}

// tell signals a rank; hear waits for the signal of that round.
func tell(ctx context.Context, r *testjob.Rank, w *window.Window[uint64], rank, slot, round int) {
	r.NoError(w.PutNotify(ctx, rank, 0, nil, window.Signal{Slot: slot, Value: uint64(round)}))
}

func hear(ctx context.Context, r *testjob.Rank, w *window.Window[uint64], slot, round int) {
	_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{slot}, Condition: window.AtLeast, Value: uint64(round)})
	r.NoError(err)
}
