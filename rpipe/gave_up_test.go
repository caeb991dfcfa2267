package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// TestCorruptWriterTellsReader has the reader get all written blocks and
// then an error, whether the writer closes with a context or without.
func TestCorruptWriterTellsReader(t *testing.T) {
	for name, during := range map[string]func(ctx context.Context) context.Context{
		"at leisure": func(ctx context.Context) context.Context { return ctx },
		"called off": pipetest.Ended,
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					opts := []rpipe.Option{rpipe.WithWidth(2)}
					if r.Me == 0 {
						giveUp(ctx, during(ctx), r, opts)
						return
					}
					rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
					r.NoError(err)
					r.NoError(r.World.Barrier(ctx), "the writer has closed")
					for range 2 {
						_, err = rd.Recv(ctx, nil)
						r.NoError(err)
					}
					for range 2 {
						_, err = rd.Read(ctx)
						r.ErrorIs(err, rpipe.ErrCorrupt)
						r.ErrorContains(err, "at the writer's end")
						r.NotErrorIs(err, io.EOF)
					}
					for range rd.Arrivals() { // until it is closed
					}
					r.NoError(rd.Close(ctx))
					gone(ctx, r, rd)
					r.NoError(r.World.Barrier(ctx))
				})
			})
		})
	}
}

// giveUp writes as much as the pipe takes, finds its end scribbled over, and closes.
func giveUp(ctx, closing context.Context, r *testjob.Rank, opts []rpipe.Option) {
	w, err := rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
	r.NoError(err)
	for range 2 {
		r.NoError(w.Send(ctx, []byte{1}))
	}
	pipetest.Memory(pipetest.WriterEnd(w).End).Flags[pipe.CreditFlag].Store(77)
	_, err = w.Alloc(ctx, 1)
	r.ErrorIs(err, rpipe.ErrCorrupt)
	r.NoError(w.Close(closing))
	r.NoError(r.World.Barrier(ctx))
	r.NoError(r.World.Barrier(ctx), "the reader has gone")
}
