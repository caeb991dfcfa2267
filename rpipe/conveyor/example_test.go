package conveyor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/runtime"
)

// A histogram whose bins are spread over ranks: each rank counts letters and sends
// each of them to the rank that has its bin. The letters travel in blocks.
func ExampleConveyor() {
	texts := []string{"irregular", "access", "conveyor"}
	fmt.Println(runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		c, err := conveyor.Open[byte](ctx, world)
		if err != nil {
			return err
		}
		pushed := make(chan error, 1)
		go func() {
			var err error
			for _, letter := range []byte(texts[world.Rank()]) {
				err = errors.Join(err, c.Push(ctx, int(letter)%world.Size(), letter))
			}
			pushed <- errors.Join(err, c.Finish(ctx))
		}()
		bins := map[byte]int{}
		for letter, err := range c.All(ctx) {
			if err != nil {
				return err
			}
			bins[letter.Value]++
		}
		if bins['r'] > 0 {
			fmt.Println("r:", bins['r'])
		}
		return errors.Join(<-pushed, c.Close(ctx))
	}))
	// Output:
	// r: 4
	// <nil>
}
