// Package tutorial holds the programs of docs/tutorial.md, so that they run.
package tutorial

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// run runs an example with four ranks of one process.
func run(body runtime.Body) {
	if err := runtime.RunLocal(context.Background(), 4, body); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func Example_putAndGet() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[float64](ctx, world, 8)
		if err != nil {
			return err
		}
		right := (world.Rank() + 1) % world.Size()

		edge := []float64{1, 2, 3}
		if err := w.Put(ctx, right, 5, edge); err != nil {
			return err
		}
		edge[0] = 99 // Put has returned: the slice is ours again

		if err := w.Flush(ctx, right); err != nil {
			return err
		}
		got := make([]float64, 3)
		if err := w.Get(ctx, right, 5, got); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("rank 1 has", got)
		}
		return w.Free(ctx)
	})
	// Output: rank 1 has [1 2 3]
}

func Example_counter() {
	run(func(ctx context.Context, job *runtime.Job) error {
		const tasks = 100
		world := job.World()
		next, err := window.Allocate[int](ctx, world, 1)
		if err != nil {
			return err
		}
		done, err := window.Allocate[int](ctx, world, tasks)
		if err != nil {
			return err
		}
		for {
			task, err := window.FetchAdd(ctx, next, 0, 0, 1)
			if err != nil {
				return err
			}
			if task >= tasks {
				break
			}
			if err := done.PutValue(ctx, 0, task, 1); err != nil {
				return err
			}
		}
		if err := done.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("all done:", !slices.Contains(done.Local(), 0))
		}
		return nil
	})
	// Output: all done: true
}

func Example_accumulate() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		histogram, err := window.Allocate[int64](ctx, world, 16)
		if err != nil {
			return err
		}
		bins := make([]int64, 16)
		for i := range 1000 {
			bins[i%len(bins)]++
		}
		if err := window.Accumulate(ctx, histogram, 0, 0, bins, window.Sum[int64]()); err != nil {
			return err
		}
		if err := histogram.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("63 from each rank:", histogram.Local()[0] == int64(63*world.Size()))
		}
		return nil
	})
	// Output: 63 from each rank: true
}

func Example_notify() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[int](ctx, world, 10)
		if err != nil {
			return err
		}
		switch world.Rank() {
		case 1:
			numbers := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
			return w.PutNotify(ctx, 0, 0, numbers, window.Signal{Slot: 7, Value: 1})
		case 0:
			if _, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{7}, Value: 1}); err != nil {
				return err
			}
			sum := 0
			for _, v := range w.Local() {
				sum += v
			}
			fmt.Println("sum", sum)
		}
		return nil
	})
	// Output: sum 55
}

func Example_waitUntil() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[int](ctx, world, 1)
		if err != nil {
			return err
		}
		if err := window.AtomicAdd(ctx, w, 0, 0, 1); err != nil {
			return err
		}
		if world.Rank() == 0 {
			all := window.Elements[int]{At: []int{0}, Condition: window.AtLeast, Value: world.Size()}
			_, n, err := window.WaitUntil(ctx, w, all)
			if err != nil {
				return err
			}
			fmt.Println("all have come:", n == world.Size())
		}
		return nil
	})
	// Output: all have come: true
}

func Example_lock() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[[2]int](ctx, world, 1)
		if err != nil {
			return err
		}
		held, err := w.Lock(ctx, 0, window.Exclusive)
		if err != nil {
			return err
		}
		pair, err := w.GetValue(ctx, 0, 0)
		if err != nil {
			return err
		}
		pair[0], pair[1] = pair[0]+1, pair[1]-1
		if err := w.PutValue(ctx, 0, 0, pair); err != nil {
			return err
		}
		if err := held.Unlock(ctx); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(w.Local()[0])
		}
		return nil
	})
	// Output: [4 -4]
}

func Example_survivors() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		half, err := world.Split(ctx, world.Rank()/2, 0)
		if err != nil {
			return err
		}
		if err := world.Barrier(ctx); err != nil { // all have their half
			return err
		}
		if world.Rank() == 3 {
			goruntime.Goexit() // as if it had been killed
		}
		err = world.Barrier(ctx)
		if !errors.Is(err, runtime.ErrRankDead) {
			return err
		}
		if world.Rank() == 2 {
			return nil // its half has lost a rank as well
		}
		if err := half.Barrier(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("ranks 0 and 1 go on")
		}
		return nil
	})
	fmt.Println(err != nil)
	// Output:
	// ranks 0 and 1 go on
	// true
}
