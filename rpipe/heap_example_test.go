package rpipe_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// Rank 1 gives memory to rank 0 and waits until that is done with it. Rank 0
// keeps some numbers there.
func ExampleHeap() {
	serve := func(ctx context.Context, world *runtime.Team) error {
		s, err := rpipe.ServeHeap(ctx, world, 0)
		if err != nil {
			return err
		}
		return errors.Join(s.Wait(ctx), s.Close(ctx))
	}
	use := func(ctx context.Context, world *runtime.Team) error {
		h, err := rpipe.OpenHeap[int](ctx, world, 1)
		if err != nil {
			return err
		}
		b, err := h.Alloc(ctx, 4)
		if err != nil {
			return err
		}
		got := make([]int, 2)
		err = errors.Join(h.Put(ctx, b, 0, []int{1, 2, 3, 4}), h.Get(ctx, b, 2, got), h.Free(b))
		fmt.Println("got", got)
		return errors.Join(err, h.Close(ctx))
	}
	fmt.Println(runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 1 {
			return serve(ctx, job.World())
		}
		return use(ctx, job.World())
	}))
	// Output:
	// got [3 4]
	// <nil>
}

// The same program runs its pipe over a window.
func ExampleOverWindow() {
	fmt.Println(runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		c, err := rpipe.OverWindow(ctx, job.World(), 1)
		if err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			w, err := rpipe.OpenWriter[byte](ctx, job.World(), 1, rpipe.WithWindow(c))
			if err != nil {
				return err
			}
			err = w.Send(ctx, []byte("over a window"))
			return errors.Join(err, w.Close(ctx), c.Close(ctx))
		}
		r, err := rpipe.OpenReader[byte](ctx, job.World(), 0, rpipe.WithWindow(c))
		if err != nil {
			return err
		}
		for b, err := range r.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(string(b.Mem()))
			if err := r.Free(b); err != nil {
				return err
			}
		}
		return errors.Join(r.Close(ctx), c.Close(ctx))
	}))
	// Output:
	// over a window
	// <nil>
}
