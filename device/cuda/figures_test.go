//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// BenchmarkGPUBetweenRanks prints the rates of the ways from one rank's memory of the GPU to another's.
func BenchmarkGPUBetweenRanks(b *testing.B) {
	needGPU(b)
	for _, provider := range []string{"shm", "tcp"} {
		out := testjob.Job{Ranks: 2, Provider: provider}.Try(b, "figures")
		fmt.Println(provider)
		fmt.Print(out.Output)
		if out.ExitCode != 0 {
			b.Fatal(out.Summary())
		}
	}
}

// figures has rank 0 move memory of the GPU to rank 1 while that waits.
func figures(ctx context.Context, r *testjob.Rank) {
	const most = 64 << 20
	g, err := Open(0)
	r.NoError(err)
	mine, err := g.Allocate(2 * most)
	r.NoError(err)
	h, err := mine.Handle()
	r.NoError(err)
	handles, err := r.World.Exchange(ctx, h[:])
	r.NoError(err)
	far, err := g.Import(Handle(handles[r.Right()]))
	r.NoError(err)
	stage, err := window.Allocate[byte](ctx, r.World, most, window.WithSlots(1))
	r.NoError(err)
	heap := make([]byte, most)
	for i := range heap {
		heap[i] = byte(i)
	}
	copy(stage.Local(), heap)
	r.NoError(mine.Store(0, heap))
	registered, err := g.Register(stage.Local())
	r.NoError(err)
	for n := 4 << 10; n <= most; n *= 4 {
		for _, way := range []struct {
			name string
			move func() error
		}{
			{"copy to the importer's memory", func() error { return far.Copy(0, mine, 0, n) }},
			{"copy within this rank's memory", func() error { return mine.Copy(0, mine, most, n) }},
			{"store from the Go heap", func() error { return mine.Store(0, heap[:n]) }},
			{"load to the Go heap", func() error { return mine.Load(0, heap[:n]) }},
			{"store from a registered window", func() error { return mine.Store(0, stage.Local()[:n]) }},
			{"load to a registered window", func() error { return mine.Load(0, stage.Local()[:n]) }},
			{"put from a window, and flush", func() error {
				if err := stage.Put(ctx, r.Right(), 0, stage.Local()[:n]); err != nil {
					return err
				}
				return stage.Flush(ctx, r.Right())
			}},
		} {
			if r.Me == 0 {
				fmt.Printf("%-32s %10d bytes %s\n", way.name, n, rate(r, n, way.move))
			}
			r.NoError(r.World.Barrier(ctx))
		}
	}
	r.NoError(registered.Free())
	r.NoError(stage.Free(ctx))
	r.NoError(far.Free())
	r.NoError(r.World.Barrier(ctx))
	r.NoError(mine.Free())
	r.NoError(g.Close())
}

// rate returns the fastest time and the rate of a way to move n bytes, of 100 ms at least.
func rate(r *testjob.Rank, n int, move func() error) string {
	best := time.Hour
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
		start := time.Now()
		r.NoError(move())
		best = min(best, time.Since(start))
	}
	return fmt.Sprintf("%10.1f us %9.2f GB/s", float64(best)/1e3, float64(n)/float64(best))
}
