package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// A rank waits for blocks and for a timer in one select. The timer stands for
// anything that a Go program selects on.
func ExampleReader_Arrivals() {
	read := func(r *rpipe.Reader[int]) error {
		arrivals, timer := r.Arrivals(), time.NewTimer(time.Minute)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				return errors.New("nothing arrives any more")
			case <-arrivals:
			}
			switch b, err := r.TryRead(); {
			case errors.Is(err, rpipe.ErrWouldBlock):
			case errors.Is(err, io.EOF):
				fmt.Println("end")
				return nil
			case err != nil:
				return err
			default:
				fmt.Println("read", b.Mem()[0])
				if err := r.Free(b); err != nil {
					return err
				}
			}
		}
	}
	fmt.Println(runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 0 {
			w, err := rpipe.OpenWriter[int](ctx, job.World(), 1)
			if err != nil {
				return err
			}
			for i := range 3 {
				err = errors.Join(err, w.Send(ctx, []int{i}))
			}
			return errors.Join(err, w.Close(ctx))
		}
		r, err := rpipe.OpenReader[int](ctx, job.World(), 0)
		if err != nil {
			return err
		}
		return errors.Join(read(r), r.Close(ctx))
	}))
	// Output:
	// read 0
	// read 1
	// read 2
	// end
	// <nil>
}
