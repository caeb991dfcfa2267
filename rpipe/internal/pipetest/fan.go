package pipetest

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// FanOfMany opens so many pipes of a rank to itself.
func FanOfMany(ctx context.Context, r *testjob.Rank, n int) (*fan.In[int32], []*rpipe.Writer[int32]) {
	f, err := fan.OpenIn[int32](ctx, r.World, make([]int, n), Small...)
	r.NoError(err)
	writers := make([]*rpipe.Writer[int32], n)
	for i := range writers {
		writers[i], err = rpipe.OpenWriter[int32](ctx, r.World, 0, Small...)
		r.NoError(err)
	}
	return f, writers
}

// CloseMany closes pipes of a rank to itself, such as FanOfMany opens.
func CloseMany[T any](ctx context.Context, r *testjob.Rank, f *fan.In[T], writers []*rpipe.Writer[T]) {
	done := make(chan error, 1)
	go func() {
		var errs []error
		for _, w := range writers {
			errs = append(errs, w.Close(ctx))
		}
		done <- errors.Join(errs...)
	}()
	_, _, err := f.Read(ctx)
	r.Equal(io.EOF, err)
	r.NoError(<-done)
	r.NoError(f.Close(ctx))
}
