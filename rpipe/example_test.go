package rpipe_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// One rank allocates memory at another one, stores a number there and writes the
// block; the other reads it, uses it and frees it.
func Example() {
	write := func(ctx context.Context, world *runtime.Team) error {
		w, err := rpipe.OpenWriter[int](ctx, world, 1, rpipe.WithWidth(8))
		if err != nil {
			return err
		}
		b, err := w.Alloc(ctx, 1)
		if err != nil {
			return err
		}
		b.Mem()[0] = 42
		return errors.Join(w.Write(ctx, b), w.Close(ctx))
	}
	read := func(ctx context.Context, world *runtime.Team) error {
		r, err := rpipe.OpenReader[int](ctx, world, 0, rpipe.WithWidth(8))
		if err != nil {
			return err
		}
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		fmt.Println("read", b.Mem()[0])
		return errors.Join(r.Free(b), r.Close(ctx))
	}
	fmt.Println(runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 0 {
			return write(ctx, job.World())
		}
		return read(ctx, job.World())
	}))
	// Output:
	// read 42
	// <nil>
}

// Several blocks are allocated before the first is written, and freed in any
// order; All ends when the writer has closed the pipe.
func ExampleReader_All() {
	fmt.Println(runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 0 {
			w, err := rpipe.OpenWriter[byte](ctx, job.World(), 1)
			if err != nil {
				return err
			}
			for _, word := range []string{"one", "sided", "messaging"} {
				err = errors.Join(err, w.Send(ctx, []byte(word)))
			}
			return errors.Join(err, w.Close(ctx))
		}
		r, err := rpipe.OpenReader[byte](ctx, job.World(), 0)
		if err != nil {
			return err
		}
		for b, err := range r.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", b.Mem())
			if err := r.Free(b); err != nil {
				return err
			}
		}
		return r.Close(ctx)
	}))
	// Output:
	// one
	// sided
	// messaging
	// <nil>
}

// A pipe over a window.
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
