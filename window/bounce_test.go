package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// refusing is a job over devices that do not register the memory of PCI devices.
func refusing(ranks int) testjob.Config {
	return testjob.Config{Provider: "loop", NIC: true, Ranks: ranks}
}

// staged returns the bytes that this rank staged on their way to all ranks.
func staged(r *testjob.Rank) (n uint64) {
	for _, s := range r.Job.Stats() {
		n += s.Staged
	}
	return n
}

// Elements that a device refuses go through memory of the host, and each byte is counted. A rank whose
// elements the device takes bounces none.
func TestBouncedBytesAreCountedAndNamedByPath(t *testing.T) {
	const n = 300_000 // of five stages
	refusing(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		var p *device.Piece
		if r.Me == 1 {
			var end func()
			p, end = piece(r, n, driver.KindBAR)
			defer end()
		}
		w := allocate[byte](ctx, r, n, window.On(p, device.Bounce))
		path, err := w.Path(ctx, r.Right())
		r.NoError(err)
		r.Equal(r.Right() == 1, path.Bounced)
		r.Contains(path.String(), map[bool]string{true: "bounced at the target, over", false: "requests over"}[path.Bounced])
		r.False(path.Mapped)
		for i := range n / 2 {
			w.Local()[i] = byte(i * (r.Me + 3))
		}
		r.NoError(r.World.Barrier(ctx))
		before := staged(r)
		r.NoError(w.PutNotify(ctx, r.Right(), n/2, w.Local()[:n/2], window.Signal{Value: 1}))
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
		r.NoError(err)
		for i := range n / 2 {
			if w.Local()[n/2+i] != byte(i*(r.Left()+3)) {
				r.Failf("wrong", "byte %d", i)
			}
		}
		// Rank 0 puts from registered memory to rank 1's stage. Rank 1 puts from memory that its device refuses.
		r.EqualValues(n/2, staged(r)-before)
		r.NoError(r.World.Barrier(ctx))
		before = staged(r)
		got := make([]byte, 1000)
		r.NoError(w.Get(ctx, r.Right(), n/2, got))
		r.Equal(byte(r.Me+3), got[1])
		if r.Me == 0 {
			r.GreaterOrEqual(staged(r)-before, uint64(1000))
		}
		r.NoError(w.Fence(ctx))
		r.NoError(w.Free(ctx))
	})
}

// A put that its caller gave up does not mix its bytes with those of the next put.
func TestCanceledBouncedPutLeavesTheStageInOrder(t *testing.T) {
	const n = 4096
	refusing(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		p, end := piece(r, 2*n, driver.KindBAR)
		defer end()
		w := allocate[byte](ctx, r, 2*n, window.On(p, device.Bounce))
		src := [2][]byte{make([]byte, n), make([]byte, n)}
		for i := range n {
			src[0][i], src[1][i] = 1, 2
		}
		for range 50 {
			given, cancel := context.WithCancel(ctx)
			go cancel()
			_ = w.Put(given, r.Right(), 0, src[0]) // it may arrive or not
			r.NoError(w.Put(ctx, r.Right(), n, src[1]))
			r.NoError(w.Flush(ctx, r.Right()))
			r.NoError(r.World.Barrier(ctx))
			for i := range n {
				r.LessOrEqual(w.Local()[i], byte(1))
				r.EqualValues(2, w.Local()[n+i])
			}
			clear(w.Local())
			r.NoError(r.World.Barrier(ctx))
		}
		r.NoError(w.Free(ctx))
	})
}

// A signal among the elements of a window whose memory bounces tells of the data before it.
func TestSignalInBouncedElementsFollowsItsData(t *testing.T) {
	refusing(3).Run(t, func(ctx context.Context, r *testjob.Rank) {
		p, end := piece(r, 64, driver.KindBAR)
		defer end()
		w := allocate[uint64](ctx, r, 4, window.On(p, device.Bounce))
		for round := uint64(1); round <= 50; round++ {
			r.NoError(window.PutSignal(ctx, w, r.Right(), 0, []uint64{round, round}, window.SignalAt[uint64]{Window: w, Index: 3, Value: round}))
			_, _, err := window.WaitUntil(ctx, w, window.Elements[uint64]{At: []int{3}, Value: round})
			r.NoError(err)
			r.Equal([]uint64{round, round}, w.Local()[:2])
			r.NoError(w.Fence(ctx))
		}
		r.NoError(w.Free(ctx))
	})
}
