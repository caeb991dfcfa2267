//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// step makes one step of an operation; the input has ended when last is set. It returns
// more while this rank must go on.
type step = func(ctx context.Context, i int, last bool) (more bool, err error)

// check compares the result when the steps are over.
type check = func(ctx context.Context) error

// An operation is one kind of communication on a team. Its members make steps until all
// of them have been told to end.
type operation struct {
	name string
	open func(ctx context.Context, t *runtime.Team) (step, check, error)
}

var operations = []operation{
	{"put", openPut}, {"bulk", openBulk}, {"atomic", openAtomic}, {"lock", openLock},
	{"fence", openFence}, {"reduce", openReduce}, {"pipe", openPipe},
}

func allocate(ctx context.Context, t *runtime.Team, n int) (*window.Window[int], error) {
	return window.Allocate[int](ctx, t, n)
}

// together ends an operation of which each rank decides alone when to stop.
func together(t *runtime.Team) check {
	return func(ctx context.Context) error { return t.Barrier(ctx) }
}

// openPut puts a number to each member in turn and gets it back.
func openPut(ctx context.Context, t *runtime.Team) (step, check, error) {
	w, err := allocate(ctx, t, t.Size())
	return func(ctx context.Context, i int, last bool) (bool, error) {
		to := i % t.Size()
		if err := w.PutValue(ctx, to, t.Rank(), i); err != nil {
			return false, err
		}
		if err := w.Flush(ctx, to); err != nil {
			return false, err
		}
		got, err := w.GetValue(ctx, to, t.Rank())
		if err == nil && got != i {
			err = fmt.Errorf("put %d to rank %d, got %d", i, to, got)
		}
		return !last, err
	}, together(t), err
}

// bulk is the number of words of a large put.
const bulk = 32 << 10

// openBulk puts 256 KiB to each member in turn and gets them back.
func openBulk(ctx context.Context, t *runtime.Team) (step, check, error) {
	w, err := allocate(ctx, t, bulk*t.Size())
	src, dst := make([]int, bulk), make([]int, bulk)
	return func(ctx context.Context, i int, last bool) (bool, error) {
		for k := range src {
			src[k] = i*bulk + k
		}
		to := (t.Rank() + i) % t.Size()
		if err := w.Put(ctx, to, t.Rank()*bulk, src); err != nil {
			return false, err
		}
		if err := w.Flush(ctx, to); err != nil {
			return false, err
		}
		err := w.Get(ctx, to, t.Rank()*bulk, dst)
		if err == nil && !slices.Equal(src, dst) {
			err = fmt.Errorf("rank %d returned other bytes", to)
		}
		return !last, err
	}, together(t), err
}

// sums returns a check that the members' numbers count the steps of all members.
func sums(t *runtime.Team, w *window.Window[int], mine *int) check {
	return func(ctx context.Context) error {
		if err := t.Barrier(ctx); err != nil {
			return err
		}
		total := []int{*mine, w.Local()[0]}
		err := collectives.AllReduce(ctx, t, collectives.Sum[int](), total, total)
		if err == nil && total[0] != total[1] {
			err = fmt.Errorf("counted %d, want %d", total[1], total[0])
		}
		return err
	}
}

// openAtomic counts at each member in turn.
func openAtomic(ctx context.Context, t *runtime.Team) (step, check, error) {
	w, err := allocate(ctx, t, 1)
	mine := 0
	return func(ctx context.Context, i int, last bool) (bool, error) {
		_, err := window.FetchAdd(ctx, w, (t.Rank()+i)%t.Size(), 0, 1)
		mine = i
		return !last, err
	}, sums(t, w, &mine), err
}

// openLock counts at each member in turn under its lock.
func openLock(ctx context.Context, t *runtime.Team) (step, check, error) {
	w, err := allocate(ctx, t, 1)
	mine := 0
	return func(ctx context.Context, i int, last bool) (bool, error) {
		to := (t.Rank() + i) % t.Size()
		held, err := w.Lock(ctx, to, window.Exclusive)
		if err != nil {
			return false, err
		}
		n, err := w.GetValue(ctx, to, 0)
		if err == nil {
			err = w.PutValue(ctx, to, 0, n+1)
		}
		mine = i
		return !last, errors.Join(err, held.Unlock(ctx))
	}, sums(t, w, &mine), err
}

// openFence puts a number to all members before each fence. The sign says that the
// member has been told to end. They end when all have been told.
func openFence(ctx context.Context, t *runtime.Team) (step, check, error) {
	w, err := allocate(ctx, t, 2*t.Size()) // two places for each member, which steps use in turn
	return func(ctx context.Context, i int, last bool) (bool, error) {
		v, half := i, i%2*t.Size()
		if last {
			v = -i
		}
		for to := range t.Size() {
			if err := w.PutValue(ctx, to, half+t.Rank(), v); err != nil {
				return false, err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return false, err
		}
		more := false
		for from := range t.Size() {
			switch w.Local()[half+from] {
			case i:
				more = true
			case -i:
			default:
				return false, fmt.Errorf("rank %d put %d in step %d", from, w.Local()[half+from], i)
			}
		}
		return more, nil
	}, together(t), err
}

// openReduce adds up 1000 numbers of each member, and the members that have been told to
// end.
func openReduce(_ context.Context, t *runtime.Team) (step, check, error) {
	in, out := make([]int, 1000), make([]int, 1000)
	return func(ctx context.Context, i int, last bool) (bool, error) {
		for k := range in {
			in[k] = i
		}
		if in[0] = 0; last {
			in[0] = 1
		}
		if err := collectives.AllReduce(ctx, t, collectives.Sum[int](), in, out); err != nil {
			return false, err
		}
		if want := i * t.Size(); out[1] != want || out[999] != want {
			return false, fmt.Errorf("sums %d and %d, want %d", out[1], out[999], want)
		}
		return out[0] < t.Size(), nil
	}, together(t), nil
}

// openPipe sends numbers to the next member and receives those of the one before. The
// end of a member's input closes its pipe.
func openPipe(ctx context.Context, t *runtime.Team) (step, check, error) {
	left, right := (t.Rank()+t.Size()-1)%t.Size(), (t.Rank()+1)%t.Size()
	w, err := rpipe.OpenWriter[int](ctx, t, right)
	if err != nil {
		return nil, nil, err
	}
	r, err := rpipe.OpenReader[int](ctx, t, left)
	closed := false
	return func(ctx context.Context, i int, last bool) (bool, error) {
		if !closed {
			if err := w.Send(ctx, []int{i, i * i}); err != nil {
				return false, err
			}
		}
		if last && !closed {
			closed = true
			if err := w.CloseWrite(ctx); err != nil {
				return false, err
			}
		}
		got := make([]int, 2)
		switch _, err := r.Recv(ctx, got); {
		case errors.Is(err, io.EOF) && closed:
			return false, nil
		case errors.Is(err, io.EOF): // the left member has been told first
			return false, w.CloseWrite(ctx)
		case err != nil:
			return false, err
		case got[0] != i || got[1] != i*i:
			return false, fmt.Errorf("received %v in step %d", got, i)
		}
		return true, nil
	}, func(ctx context.Context) error { return errors.Join(w.Close(ctx), r.Close(ctx), t.Barrier(ctx)) }, err
}
