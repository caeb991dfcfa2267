package litmus

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// A litmus is a program of a few ranks.
type litmus struct {
	ranks int
	body  testjob.Body
}

// programs are the litmus tests that run between processes as well.
func programs() map[string]litmus {
	return map[string]litmus{
		"message passing":     {2, messagePassing},
		"flag elsewhere":      {3, flagElsewhere},
		"store buffering":     {2, storeBuffering},
		"fence":               {4, fence},
		"order":               {2, order},
		"source reuse":        {2, sourceReuse},
		"accumulate":          {3, accumulate},
		"accumulate in order": {2, accumulateInOrder},
		"mixed atomics":       {3, mixedAtomics},
		"lock":                {3, lock},
		"wake-up":             {2, wakeUp},
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
	testjob.EachTransport(t, l.ranks, func(t *testing.T, c testjob.Config) { c.Run(t, l.body) })
	if testjob.Race {
		return // the detector looks at one process
	}
	for _, j := range testjob.Processes(l.ranks) {
		t.Run(j.String(), func(t *testing.T) { j.Run(t, name) })
	}
}

// rounds scales how often a program runs.
func rounds(n int) int {
	if testjob.Soak() {
		return 50 * n
	}
	return n
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
