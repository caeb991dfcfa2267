// Package farheap gives a rank, the client, memory of another rank, the server. The client
// allocates there by its own shadow of the heap, puts, gets and frees. The server's program
// takes no part, so a rank can lend its memory and compute at the same time:
//
//	client                                             server
//	h, err := farheap.Open[float64](ctx, world, 1)     s, err := farheap.Serve(ctx, world, 0)
//	b, err := h.Alloc(ctx, 1000)                       err = s.Wait(ctx)
//	err = h.Put(ctx, b, 0, values)                     err = s.Close(ctx)
//	err = h.Get(ctx, b, 0, values)
//	err = h.Free(b)
//	err = h.Close(ctx)
//
// Client and server find each other as the ends of a pipe do: by team, ranks, name and
// count of openings. Both give WithName, WithHeap and WithWindow.
package farheap

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// An Option adjusts an end of a heap as it is opened. A number out of an option's bounds is
// runtime.ErrRange then. Ends that give other names or sizes do not match: a call returns
// runtime.ErrMismatch.
type Option pipe.Option

// WithName names the heap. Without it the name is "heap". Both ends give it.
func WithName(name string) Option { return Option(rpipe.WithName(name)) }

// WithHeap sets the bytes that the server gives, a multiple of 64 up to 1 GiB. Without it that is
// rpipe.DefaultHeap. Both ends give it.
func WithHeap(bytes int) Option { return Option(rpipe.WithHeap(bytes)) }

// WithBlocks sets how many blocks may be allocated and not yet freed, from 1 to 2^24. Without it that is
// rpipe.DefaultBlocks. It is the client's alone.
func WithBlocks(n int) Option { return Option(rpipe.WithBlocks(n)) }

// WithPolicy sets where blocks go. Without it that is rpipe.NextFit. It is the client's
// alone.
func WithPolicy(p rpipe.Policy) Option { return Option(rpipe.WithPolicy(p)) }

// WithWindow has the heap lie in a place of a window. With nil it is as without. Both ends give it.
// Errors are those of rpipe.WithWindow.
func WithWindow(pool *rpipe.WindowPool) Option { return Option(rpipe.WithWindow(pool)) }

// open opens one end of a heap: an end of a pipe that carries no blocks. begin makes the part in
// which client and server differ.
func open[T, E any](ctx context.Context, op string, t *runtime.Team, peer int, client bool, opts []Option, begin func(p *pipe.End) (E, error)) (end E, err error) {
	served := func(o *pipe.Options) error { o.Served = true; return nil }
	var o pipe.Opening
	pipe.Add[T](&o, op, t, peer, client, pipe.Unwrap(opts, rpipe.WithName("heap"), served),
		func(p *pipe.End) (err error) { end, err = begin(p); return err })
	err = o.Open(ctx)
	return end, err
}

// ErrFull: the heap has no room just now.
var ErrFull = errors.New("the heap is full: free blocks, or open it with a larger WithHeap or WithBlocks")

var errServerGone = fmt.Errorf("%w by the server, whose memory is gone; close this end, and open another heap", rpipe.ErrClosed)
