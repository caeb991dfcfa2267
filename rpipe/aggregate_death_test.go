package rpipe_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// bodiesOfAggregates run as processes of which rank 2 is killed; the others say that
// they live.
func bodiesOfAggregates() map[string]testjob.Body {
	return map[string]testjob.Body{"fan-in": fanInOfTheDead, "fan-out": fanOutToTheDead, "active": callsOfTheDead, "conveyor": recordsOfTheDead}
}

func fanInOfTheDead(ctx context.Context, r *testjob.Rank) {
	const blocks = 1000
	if r.Me > 0 {
		w, err := rpipe.OpenWriter[int](ctx, r.World, 0, pipetest.Small...)
		r.NoError(err)
		for i := range blocks {
			r.NoError(w.Send(ctx, []int{i}))
			if r.Me == 2 && i == 100 {
				r.Die()
			}
		}
		r.NoError(w.Close(ctx))
	} else {
		f, err := fan.OpenIn[int](ctx, r.World, pipetest.Others(r.N), pipetest.Small...)
		r.NoError(err)
		got, dead := make([]int, r.N-1), 0
		for b, err := range f.All(ctx) {
			if err != nil {
				r.ErrorIs(err, runtime.ErrRankDead)
				r.Equal(1, b.From)
				dead++
				continue
			}
			r.Equal(got[b.From], b.Mem()[0])
			got[b.From]++
			r.NoError(f.Free(b.Block))
		}
		r.Equal(1, dead)
		r.Equal(blocks, got[0])
		r.LessOrEqual(got[1], 101)
		r.NoError(f.Close(ctx))
	}
	fmt.Println("lives", r.Me)
}

func fanOutToTheDead(ctx context.Context, r *testjob.Rank) {
	const blocks = 1000
	if r.Me == 0 {
		f, err := fan.OpenOut[int](ctx, r.World, pipetest.Others(r.N), pipetest.Small...)
		r.NoError(err)
		dead := 0
		for i := range blocks {
			b, err := f.Alloc(ctx, 1)
			r.NoError(err)
			b.Mem()[0] = i
			if err := f.Write(ctx, b); err != nil {
				r.ErrorIs(err, runtime.ErrRankDead)
				dead++
			}
		}
		r.Equal(1, dead)
		r.NoError(f.Close(ctx))
	} else {
		rd, err := rpipe.OpenReader[int](ctx, r.World, 0, pipetest.Small...)
		r.NoError(err)
		i := 0
		for b, err := range rd.All(ctx) {
			r.NoError(err)
			r.Equal(i, b.Mem()[0])
			r.NoError(rd.Free(b))
			if i++; r.Me == 2 && i == 100 {
				r.Die()
			}
		}
		r.Equal(blocks, i)
		r.NoError(rd.Close(ctx))
	}
	fmt.Println("lives", r.Me)
}

func callsOfTheDead(ctx context.Context, r *testjob.Rank) {
	var called atomic.Int32
	a, err := active.Open(ctx, r.World, active.Handlers{
		"echo": pipetest.EchoFrom,
		"dies": func(ctx context.Context, _ int, _ []byte) ([]byte, error) {
			if called.Add(1) == 2 {
				r.Die() // both others wait for their replies
			}
			<-ctx.Done()
			return nil, nil
		}})
	r.NoError(err)
	if r.Me < 2 {
		_, err := a.Call(ctx, 2, "dies", nil)
		r.ErrorIs(err, runtime.ErrRankDead)
		_, err = a.Call(ctx, 2, "echo", nil)
		r.ErrorIs(err, runtime.ErrRankDead)
		r.ErrorIs(a.Send(ctx, 2, "echo", nil), runtime.ErrRankDead)
		_, err = a.Call(ctx, 1-r.Me, "echo", nil)
		r.NoError(err)
	}
	_ = a.Close(ctx) // records for the dead rank are lost
	r.NoError(ctx.Err())
	fmt.Println("lives", r.Me)
}

func recordsOfTheDead(ctx context.Context, r *testjob.Rank) {
	const records = 3000
	v, err := conveyor.Open[int](ctx, r.World, conveyor.WithBatch(64), conveyor.WithHeap(1024), conveyor.WithWidth(8))
	r.NoError(err)
	pushed := make(chan struct{})
	go func() {
		defer close(pushed)
		for i := range records {
			for to := range r.N {
				if err := v.Push(ctx, to, i); err != nil && to != 2 {
					fmt.Println("push", err)
				}
			}
			if r.Me == 2 && i == records/3 {
				r.Die()
			}
		}
		_ = v.Finish(ctx) // records for the dead rank are lost
	}()
	var next [3]int
	dead := 0
	for u, err := range v.All(ctx) {
		if err != nil {
			r.ErrorIs(err, runtime.ErrRankDead)
			r.Equal(2, u.From)
			dead++
			continue
		}
		r.Equal(next[u.From], u.Value)
		next[u.From]++
	}
	<-pushed
	r.Equal(1, dead)
	r.Equal([2]int{records, records}, [2]int(next[:2]))
	_ = v.Close(ctx)
	r.NoError(ctx.Err())
	fmt.Println("lives", r.Me)
}

func TestAggregatesOutliveOneProcess(t *testing.T) {
	for _, j := range testjob.Processes(3) {
		for name := range bodiesOfAggregates() {
			t.Run(j.String()+"/"+name, func(t *testing.T) {
				out := j.Try(t, name)
				require.NotZero(t, out.ExitCode)
				require.Contains(t, out.Output, "lives 0", out.Summary())
				require.Contains(t, out.Output, "lives 1", out.Summary())
			})
		}
	}
}
