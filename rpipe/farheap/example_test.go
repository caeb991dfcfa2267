package farheap_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

// Rank 1 gives memory to rank 0 and waits until that is done with it. Rank 0
// keeps some numbers there.
func Example() {
	serve := func(ctx context.Context, world *runtime.Team) error {
		s, err := farheap.Serve(ctx, world, 0)
		if err != nil {
			return err
		}
		return errors.Join(s.Wait(ctx), s.Close(ctx))
	}
	use := func(ctx context.Context, world *runtime.Team) error {
		h, err := farheap.Open[int](ctx, world, 1)
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
