package pipetest

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

// EchoFrom is a handler that returns the request and the number of the calling rank.
func EchoFrom(_ context.Context, from int, request []byte) ([]byte, error) {
	return binary.LittleEndian.AppendUint32(bytes.Clone(request), uint32(from)), nil
}

// The result of Others holds all ranks of a job of n ranks but the first.
func Others(n int) (ranks []int) {
	for i := 1; i < n; i++ {
		ranks = append(ranks, i)
	}
	return ranks
}

// SixtyFour returns 64 bytes of a value.
func SixtyFour(value byte) []byte {
	b := make([]byte, 64)
	for i := range b {
		b[i] = value
	}
	return b
}

// TwoFit are pull pipes whose readers hold two blocks of 64 bytes where they fetch.
var TwoFit = []rpipe.Option{rpipe.WithPull(), rpipe.WithHeap(128), rpipe.WithWidth(4)}

// Ends opens a pipe from rank 0 to rank 1 and runs the rank's side of it; other
// ranks do nothing. Both sides close in the end.
func Ends[T any](ctx context.Context, r *testjob.Rank, write func(w *rpipe.Writer[T]), read func(rd *rpipe.Reader[T]), opts ...rpipe.Option) {
	switch r.Me {
	case 0:
		w, err := rpipe.OpenWriter[T](ctx, r.World, 1, opts...)
		r.NoError(err)
		write(w)
		r.NoError(w.Close(ctx))
	case 1:
		rd, err := rpipe.OpenReader[T](ctx, r.World, 0, opts...)
		r.NoError(err)
		read(rd)
		r.NoError(rd.Close(ctx))
	}
}

// Modes are the kinds of pipes.
var Modes = map[string][]rpipe.Option{
	"push-deferred":  {},
	"push-immediate": {rpipe.WithSync(rpipe.Immediate)},
	"pull-deferred":  {rpipe.WithPull()},
	"pull-immediate": {rpipe.WithPull(), rpipe.WithSync(rpipe.Immediate)},
	"two-puts":       {rpipe.WithTwoPuts()},
}

// Ended returns a context that has ended.
func Ended(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}
