package rpipe_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// little is less memory than the openings of these tests take.
const little = 16 << 20

// tooMuch is how many ends there is no memory for, though there is for many.
const tooMuch = 40

// An opening that finds memory for some of its ends only is none: the writer's first
// end, which looks for the reader's all the while, meets the one that is opened next.
func TestOpenWithoutMemoryShiftsNoPairs(t *testing.T) {
	for name, open := range map[string]func(ctx context.Context, r *testjob.Rank) error{
		"fan-in": func(ctx context.Context, r *testjob.Rank) error {
			_, err := fan.OpenIn[byte](ctx, r.World, make([]int, tooMuch))
			return err
		},
		"fan-out": func(ctx context.Context, r *testjob.Rank) error {
			_, err := fan.OpenOut[byte](ctx, r.World, make([]int, tooMuch), rpipe.WithBlocks(1<<15), rpipe.WithHeap(1<<21))
			return err
		},
		"conveyor": func(ctx context.Context, r *testjob.Rank) error {
			_, err := conveyor.Open[byte](ctx, r.World, conveyor.WithName("pipe"), conveyor.WithHeap(little/2))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { pairBesideFailure(ctx, r, open) }, runtime.WithHeap(little))
			})
		})
	}
}

func pairBesideFailure(ctx context.Context, r *testjob.Rank, open func(ctx context.Context, r *testjob.Rank) error) {
	if r.Me == 0 {
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte{7}))
		r.NoError(w.Close(ctx))
		return
	}
	back, err := rpipe.OpenWriter[byte](ctx, r.World, 0, rpipe.WithName("other")) // the memory that all pipes share exists now
	r.NoError(err)
	before := pipetest.Used(r.World)
	for range 3 {
		r.ErrorIs(open(ctx, r), runtime.ErrExhausted)
		r.LessOrEqual(pipetest.Used(r.World), before+1<<19, "what was taken is given back, but for a slab")
	}
	f, err := fan.OpenIn[byte](ctx, r.World, []int{0})
	r.NoError(err)
	b, from, err := f.Read(ctx)
	r.NoError(err)
	r.Zero(from)
	r.Equal([]byte{7}, b.Mem())
	r.NoError(f.Free(b))
	_, _, err = f.Read(ctx)
	r.Equal(io.EOF, err)
	r.NoError(f.Close(ctx))
	r.NoError(back.Close(ctx))
}

// Both meshes of active messages are opened, or none.
func TestActiveOpenWithoutMemoryShiftsNoPairs(t *testing.T) {
	c := testjob.Config{Provider: "loop", Ranks: 2}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			_, err := active.Open(ctx, r.World, nil, active.WithHeap(5<<20)) // there is room for three of four
			r.ErrorIs(err, runtime.ErrExhausted)
		}
		a, err := active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom})
		r.NoError(err)
		for to := range r.N {
			_, err := a.Call(ctx, to, "echo", []byte("hello"))
			r.NoError(err)
		}
		r.NoError(a.Close(ctx))
	}, runtime.WithHeap(little))
}

// TestTeamCountsItsOwnOpenings: so the counts go with the team.
func TestTeamCountsItsOwnOpenings(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		half, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		for _, of := range []*runtime.Team{r.World, half, half} {
			_, err := rpipe.OpenWriter[byte](ctx, of, 0)
			r.NoError(err)
		}
		r.Equal([]int{1}, slices.Collect(maps.Values(team.Of(r.World).Openings)))
		r.Equal([]int{2}, slices.Collect(maps.Values(team.Of(half).Openings)))
	})
}
