package fan_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// A writer's false claims concern its own pipe alone. The fan-in finds the blocks of the
// other pipes, however often that writer claims to have waited.
func TestFanInReadsPipesBesideOneThatMiscounts(t *testing.T) {
	for name, claim := range map[string]uint64{"a little": 20 << 2, "a lot": 1 << 40, "half of all": 1 << 62} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 0 {
						writeBesideALiar(ctx, r)
					} else {
						readBesideALiar(ctx, r, claim)
					}
				})
			})
		})
	}
}

const besideALiar = 10 // blocks of the honest pipe

// writeBesideALiar has pipe 0 looked at after its word was damaged, and then
// writes to pipe 1.
func writeBesideALiar(ctx context.Context, r *testjob.Rank) {
	var w [2]*rpipe.Writer[byte]
	for i := range w {
		var err error
		w[i], err = rpipe.OpenWriter[byte](ctx, r.World, 1)
		r.NoError(err)
	}
	r.NoError(w[0].Send(ctx, []byte{100}))
	r.NoError(r.World.Barrier(ctx)) // damaged
	r.NoError(w[0].Send(ctx, []byte{101}))
	r.NoError(r.World.Barrier(ctx)) // read
	for i := range besideALiar {
		r.NoError(w[1].Send(ctx, []byte{byte(i)}))
	}
	for i := range w {
		r.NoError(w[i].Close(ctx))
	}
}

func readBesideALiar(ctx context.Context, r *testjob.Rank, claim uint64) {
	f, err := fan.OpenIn[byte](ctx, r.World, []int{0, 0})
	r.NoError(err)
	read := func(from int, value byte) {
		b, at, err := f.Read(ctx)
		r.NoError(err)
		r.Equal(from, at)
		r.Equal([]byte{value}, b.Mem())
		r.NoError(f.Free(b))
	}
	read(0, 100)
	wanted(f.Ends()[0]).Store(claim)
	r.NoError(r.World.Barrier(ctx))
	read(0, 101)
	r.NoError(r.World.Barrier(ctx))
	for i := range besideALiar {
		read(1, byte(i))
	}
	for _, err := range f.All(ctx) {
		r.NoError(err)
	}
	r.NoError(f.Close(ctx))
}

// wanted returns the word by which the writer of a pipe reports that it waits.
func wanted(r *pipe.Reader) *atomic.Uint64 { return &pipetest.Memory(r.End).Flags[r.WantedFlag()] }
