package active_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/runtime"
)

// Ranks count at rank 0, and request the count from it.
func ExampleEndpoint() {
	fmt.Println(runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		var count atomic.Int64
		a, err := active.Open(ctx, world, active.Handlers{
			"count": func(_ context.Context, _ int, step []byte) ([]byte, error) {
				return fmt.Append(nil, count.Add(int64(len(step)))), nil
			}})
		if err != nil {
			return err
		}
		_, err = a.Call(ctx, 0, "count", make([]byte, 1+world.Rank()))
		err = errors.Join(err, world.Barrier(ctx))
		if world.Rank() == 2 {
			var reply []byte
			if reply, err = a.Call(ctx, 0, "count", nil); err == nil {
				fmt.Println("counted", string(reply))
			}
		}
		return errors.Join(err, a.Close(ctx))
	}))
	// Output:
	// counted 6
	// <nil>
}
