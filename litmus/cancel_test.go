package litmus

import (
	"bytes"
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// transfer is large enough to be under way for a while.
const transfer = 64 << 20

// TestGetAfterCancel: a rank cancels a get, and uses its buffer for other data.
// Forbidden: that a byte of it changes.
func TestGetAfterCancel(t *testing.T) {
	canceled := false
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, transfer)
		fill(w.Local(), 1)
		r.NoError(w.Fence(ctx))
		if r.Me == 0 {
			dst := make([]byte, transfer)
			for try := range 5 {
				soon, cancel := context.WithTimeout(ctx, time.Duration(try)*time.Millisecond)
				err := w.Get(soon, 1, 0, dst)
				cancel()
				if err == nil {
					continue
				}
				canceled = true
				r.ErrorIs(err, context.DeadlineExceeded)
				fill(dst, 2)
				goruntime.GC()
				_, err = w.GetValue(ctx, 1, transfer-1) // behind all data that is still under way
				r.NoError(err)
				r.Equal(transfer, bytes.Count(dst, []byte{2}), "bytes that no rank wrote")
			}
			r.True(canceled, "every get was too fast to be canceled")
		}
		r.NoError(w.Fence(ctx))
	})
}

// TestPutAfterCancel: a rank cancels a put and overwrites its source. Forbidden:
// the target gets data that the rank wrote over the source.
func TestPutAfterCancel(t *testing.T) {
	held := faulty.Plan{Seed: 1, DelayStarts: 1, DelayCompletions: 1, MaxDelay: time.Millisecond, MaxPolls: 1 << 20}
	for _, c := range []testjob.Config{{Provider: "tcp", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, putAfterCancel)
			c.Run(t, putAfterCancel, runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, held) }))
		})
	}
}

func putAfterCancel(ctx context.Context, r *testjob.Rank) {
	w := allocate[byte](ctx, r, transfer/4)
	if r.Me == 0 {
		src := make([]byte, transfer/4)
		for try := range 5 {
			fill(src, 1)
			soon, cancel := context.WithTimeout(ctx, time.Duration(try)*time.Millisecond/2)
			err := w.Put(soon, 1, 0, src)
			cancel()
			fill(src, 9)
			if err != nil {
				r.ErrorIs(err, context.DeadlineExceeded)
			}
		}
	}
	r.NoError(w.Fence(ctx))
	r.Zero(bytes.Count(w.Local(), []byte{9}), "bytes that were written after Put had returned")
	r.NoError(w.Fence(ctx))
}

func fill(b []byte, v byte) {
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
