package window_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Every rank puts its number into its right neighbor's memory.
func Example() {
	err := runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[int](ctx, world, 1)
		if err != nil {
			return err
		}
		right := (world.Rank() + 1) % world.Size()
		if err := w.PutValue(ctx, right, 0, world.Rank()); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		return inTurn(ctx, world, func() { fmt.Println("rank", world.Rank(), "was greeted by rank", w.Local()[0]) })
	})
	fmt.Println(err)
	// Output:
	// rank 0 was greeted by rank 2
	// rank 1 was greeted by rank 0
	// rank 2 was greeted by rank 1
	// <nil>
}

// All ranks take numbers from one counter; none is handed out twice.
func ExampleFetchAdd() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		w, err := window.Allocate[uint64](ctx, job.World(), 1)
		if err != nil {
			return err
		}
		for range 1000 {
			if _, err := window.FetchAdd(ctx, w, 0, 0, 1); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			fmt.Println("taken:", w.Local()[0])
		}
		return w.Free(ctx)
	})
	fmt.Println(err)
	// Output:
	// taken: 4000
	// <nil>
}

// The largest value wins: each rank with a larger one swaps it in.
func ExampleCompareSwap() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[int64](ctx, world, 1)
		if err != nil {
			return err
		}
		mine := int64(10 * world.Rank())
		seen, err := window.AtomicLoad(ctx, w, 0, 0)
		for err == nil && seen < mine {
			old := seen
			if seen, err = window.CompareSwap(ctx, w, 0, 0, old, mine); seen == old {
				break
			}
		}
		if err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("largest:", w.Local()[0])
		}
		return w.Free(ctx)
	})
	fmt.Println(err)
	// Output:
	// largest: 30
	// <nil>
}

// Data and the news of it go in one operation: the target waits for the signal
// and sees the data.
func ExampleWindow_PutNotify() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		w, err := window.Allocate[byte](ctx, job.World(), 64)
		if err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			text := []byte("one-sided")
			signal := window.Signal{Slot: 5, Value: uint64(len(text))}
			return w.PutNotify(ctx, 1, 0, text, signal)
		}
		_, n, err := w.WaitNotify(ctx, window.Until{Slots: []int{5}, Condition: window.NotEqual, Value: 0})
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", w.Local()[:n])
		return nil
	})
	fmt.Println(err)
	// Output:
	// one-sided
	// <nil>
}

// A get that fetches while this rank computes.
func ExampleWindow_StartGet() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[float64](ctx, world, 4)
		if err != nil {
			return err
		}
		for i := range w.Local() {
			w.Local()[i] = float64(world.Rank()) + float64(i)/10
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			theirs := make([]float64, 4)
			fetch, err := w.StartGet(ctx, 1, 0, theirs)
			if err != nil {
				return err
			}
			fmt.Println("computing")
			if err := fetch.Wait(ctx); err != nil {
				return err
			}
			fmt.Println(theirs)
		}
		return w.Free(ctx)
	})
	fmt.Println(err)
	// Output:
	// computing
	// [1 1.1 1.2 1.3]
	// <nil>
}

// Two words change together under a lock.
func ExampleWindow_Lock() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		w, err := window.Allocate[int](ctx, job.World(), 2)
		if err != nil {
			return err
		}
		for range 100 {
			if err := move(ctx, w); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if job.World().Rank() == 0 {
			fmt.Println(w.Local())
		}
		return w.Free(ctx)
	})
	fmt.Println(err)
	// Output:
	// [-400 400]
	// <nil>
}

// move takes one from rank 0's first element and adds it to the second.
func move(ctx context.Context, w *window.Window[int]) error {
	held, err := w.Lock(ctx, 0, window.Exclusive)
	if err != nil {
		return err
	}
	var both [2]int
	if err := w.Get(ctx, 0, 0, both[:]); err != nil {
		return err
	}
	both[0]--
	both[1]++
	if err := w.Put(ctx, 0, 0, both[:]); err != nil {
		return err
	}
	return held.Unlock(ctx)
}

// The fields of a struct are variables that all ranks have at the same place.
func ExampleVariable() {
	type variables struct {
		Count int64
		Grid  [4]float64
	}
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[variables](ctx, world, 1)
		if err != nil {
			return err
		}
		v := &w.Local()[0]
		count, err := window.Variable(w, &v.Count)
		if err != nil {
			return err
		}
		grid, err := window.Array(w, v.Grid[:])
		if err != nil {
			return err
		}
		right := (world.Rank() + 1) % world.Size()
		err = errors.Join(window.AtomicAdd(ctx, count, 0, 0, 1), grid.PutValue(ctx, right, 2, 0.5+float64(world.Rank())))
		if err := errors.Join(err, w.Fence(ctx)); err != nil {
			return err
		}
		if err := inTurn(ctx, world, func() { fmt.Println(v.Count, v.Grid) }); err != nil {
			return err
		}
		return w.Free(ctx)
	})
	fmt.Println(err)
	// Output:
	// 2 [0 0 1.5 0]
	// 0 [0 0 0.5 0]
	// <nil>
}

// Rank 1 attaches memory when it likes, and tells rank 0 by a pointer.
func ExampleWindow_Open() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		w, err := window.Allocate[float64](ctx, world, 0, window.WithAttachments(10))
		if err != nil {
			return err
		}
		heads, err := window.Allocate[window.Pointer[float64]](ctx, world, 1)
		if err != nil {
			return err
		}
		if world.Rank() == 1 {
			p, elems, err := w.Attach(ctx, 3)
			if err != nil {
				return err
			}
			elems[2] = 2.5
			if err := heads.PutValue(ctx, 0, 0, p.Add(2)); err != nil {
				return err
			}
		}
		if err := heads.Fence(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			a, err := w.Open(ctx, heads.Local()[0])
			if err != nil {
				return err
			}
			v, err := a.GetValue(ctx, a.Target, a.Index)
			fmt.Println(v, err, a.Close(ctx))
		}
		return errors.Join(heads.Free(ctx), w.Free(ctx))
	})
	fmt.Println(err)
	// Output:
	// 2.5 <nil> <nil>
	// <nil>
}

// inTurn has one rank after another do something.
func inTurn(ctx context.Context, team *runtime.Team, do func()) error {
	for rank := range team.Size() {
		if rank == team.Rank() {
			do()
		}
		if err := team.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}
