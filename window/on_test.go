package window_test

import (
	"context"
	"strings"
	"testing"

	"github.com/gopgas/gopgas/device"
	hostmem "github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// piece makes a piece that lies behind another one in a memfd, in place of a device with memory of a kind.
func piece(r *testjob.Rank, n int, kind driver.Kind) (p *device.Piece, end func()) {
	fd, err := hostmem.NewMemfd("device", int64(n)+1<<16)
	r.NoError(err)
	r.NoError(fd.Commit(0, fd.Size()))
	all := fd.Memory(0, fd.Size())
	all.Kind = kind
	m := device.Wrap(all, device.About{Kind: kind}, fd.Close)
	first, err := m.Allocate(1)
	r.NoError(err)
	p, err = m.Allocate(n)
	r.NoError(err)
	r.NotZero(p.Offset())
	return p, func() {
		r.NoError(p.Free())
		r.NoError(first.Free())
		r.NoError(m.Close())
	}
}

// Odd ranks have their elements in a piece, the others in their heaps.
func TestOperationsReachElementsOnPieces(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const n = 1000
		before := used(r.World)
		var p *device.Piece
		if r.Me%2 == 1 {
			var end func()
			p, end = piece(r, n*8, driver.KindMemfd)
			defer end()
		}
		w := allocate[int64](ctx, r, n, window.On(p))
		if p != nil {
			w.Local()[3] = 5
			r.EqualValues(5, p.Bytes()[3*8], "the elements are the piece")
			w.Local()[3] = 0
		}
		r.NoError(r.World.Barrier(ctx))
		src := make([]int64, n-1)
		for i := range src {
			src[i] = int64(r.Me*n + i)
		}
		r.NoError(w.PutNotify(ctx, r.Right(), 1, src, window.Signal{Slot: 2, Value: 1}))
		_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 1})
		r.NoError(err)
		for i, v := range w.Local()[1:] {
			r.EqualValues(r.Left()*n+i, v)
		}
		h, err := w.Lock(ctx, 0, window.Exclusive)
		r.NoError(err)
		v, err := w.GetValue(ctx, 0, 0)
		r.NoError(err)
		r.NoError(w.PutValue(ctx, 0, 0, v+1))
		r.NoError(h.Unlock(ctx))
		r.NoError(w.Fence(ctx))
		old, err := window.FetchAdd(ctx, w, 0, 0, 0)
		r.NoError(err)
		r.EqualValues(r.N, old)
		path, err := w.Path(ctx, r.Right())
		r.NoError(err)
		shared, err := w.Shared(ctx, r.Right())
		r.Equal(err == nil, path.Mapped)
		r.True(err == nil || shared == nil)
		r.NotEmpty(path.String())
		r.NoError(w.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

func TestWrongPiecesAreRefusedAtAllRanks(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		p, end := piece(r, 4096, driver.KindMemfd)
		_, err := window.Allocate[byte](ctx, r.World, 4097, window.On(p))
		r.ErrorIs(err, window.ErrRange)
		_, err = window.AllocateShared[byte](ctx, r.World, 1, window.On(p))
		r.Error(err)
		var opts []window.Option
		if r.Me == 0 {
			opts = append(opts, window.On(p))
		}
		_, err = window.Allocate[byte](ctx, r.World, 1, opts...)
		r.ErrorIs(err, runtime.ErrMismatch)
		w := allocate[byte](ctx, r, 1, window.On(p))
		_, err = w.Realloc(ctx, 2)
		r.ErrorIs(err, window.ErrLent)
		r.NoError(w.Free(ctx))
		end()
		_, err = window.Allocate[byte](ctx, r.World, 1, window.On(p))
		r.ErrorContains(err, "device memory was closed")
		r.NoError(r.World.Barrier(ctx))
	})
}

// A device that does not register a kind says so at all ranks, and the window is not made by copies.
func TestKindThatADeviceRefusesIsATypedErrorAtAllRanks(t *testing.T) {
	for _, atomics := range []string{"cpu", "nic"} {
		testjob.Config{Provider: "loop", NIC: true, Atomics: atomics, Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			before := used(r.World)
			var p *device.Piece
			if r.Me == 1 {
				var end func()
				p, end = piece(r, 4096, driver.KindBAR)
				defer end()
			}
			opts := []window.Option{window.On(p)}
			if atomics == "nic" { // devices do not bounce, so the request changes nothing
				opts[0] = window.On(p, device.Bounce)
			}
			_, err := window.Allocate[byte](ctx, r.World, 8, opts...)
			r.ErrorIs(err, driver.ErrKind)
			r.ErrorContains(err, "BAR")
			r.Equal(atomics == "nic", strings.Contains(err.Error(), "GRUN_ATOMICS=cpu"), "%v", err)
			r.Equal(before, used(r.World))
			r.NoError(r.World.Barrier(ctx))
		})
	}
}
