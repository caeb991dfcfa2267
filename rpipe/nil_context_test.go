package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/farheap"
)

// TestNilContextNeverEnds makes all calls that take a context.
func TestNilContextNeverEnds(t *testing.T) {
	for name, calls := range map[string]func(r *testjob.Rank){
		"pipe": nilPipe, "pipe over a window": nilPipeOverWindow, "fan": nilFan,
		"conveyor": nilConveyor, "active messages": nilActive, "heap": nilHeap,
	} {
		t.Run(name, func(t *testing.T) {
			testjob.All(t, 2, func(_ context.Context, r *testjob.Rank) {
				calls(r)
				r.NoError(r.World.Barrier(nil)) //nolint:staticcheck // what this is about
			})
		})
	}
}

var none context.Context

func nilPipe(r *testjob.Rank) { nilPipeBy(r) }

func nilPipeBy(r *testjob.Rank, opts ...rpipe.Option) {
	opts = append(opts, rpipe.WithHeap(4096), rpipe.WithWidth(2))
	w, err := rpipe.OpenWriter[byte](none, r.World, r.Right(), opts...)
	r.NoError(err)
	in, err := rpipe.OpenReader[byte](none, r.World, r.Left(), opts...)
	r.NoError(err)
	sent := make(chan error, 1)
	go func() {
		for range 20 { // more than the pipe is wide
			if err := w.Send(none, make([]byte, 1000)); err != nil {
				sent <- err
				return
			}
		}
		b, err := w.Alloc(none, 10)
		if err == nil {
			err = w.Write(none, b)
		}
		if err == nil {
			err = w.Send(none, []byte{1, 2, 3})
		}
		if err == nil {
			err = w.Flush(none)
		}
		sent <- err
	}()
	for range 20 {
		_, err := in.Recv(none, make([]byte, 1000))
		r.NoError(err)
	}
	b, err := in.Read(none)
	r.NoError(err)
	r.NoError(in.Free(b))
	r.NoError(in.Sync(none))
	r.NoError(<-sent)
	go func() { sent <- w.Close(none) }()
	for b, err := range in.All(none) {
		r.NoError(err)
		r.NoError(in.Free(b))
	}
	r.NoError(<-sent)
	r.NoError(in.Close(none))
}

func nilPipeOverWindow(r *testjob.Rank) {
	c, err := rpipe.OverWindow(none, r.World, 4, rpipe.WithHeap(4096), rpipe.WithWidth(2))
	r.NoError(err)
	nilPipeBy(r, rpipe.WithWindow(c))
	r.NoError(r.World.Barrier(none))
	r.NoError(c.Close(none))
}

func nilFan(r *testjob.Rank) {
	all := make([]int, r.N)
	for i := range all {
		all[i] = i
	}
	out, err := fan.OpenOut[byte](none, r.World, all)
	r.NoError(err)
	in, err := fan.OpenIn[byte](none, r.World, all)
	r.NoError(err)
	b, err := out.Alloc(none, 10)
	r.NoError(err)
	r.NoError(out.Write(none, b))
	r.NoError(out.Send(none, []byte{1}))
	r.NoError(out.Flush(none))
	closed := make(chan error, 1)
	go func() { closed <- out.Close(none) }()
	one, _, err := in.Read(none)
	r.NoError(err)
	r.NoError(in.Free(one))
	for b, err := range in.All(none) {
		r.NoError(err)
		r.NoError(in.Free(b.Block))
	}
	r.NoError(<-closed)
	r.NoError(in.Close(none))
}

func nilConveyor(r *testjob.Rank) {
	c, err := conveyor.Open[int](none, r.World, conveyor.WithBatch(16))
	r.NoError(err)
	for to := range r.N {
		r.NoError(c.Push(none, to, 1))
	}
	r.NoError(c.Flush(none))
	_, _, err = c.Pull(none)
	r.NoError(err)
	r.NoError(c.Finish(none))
	for _, err := range c.All(none) {
		r.NoError(err)
	}
	r.NoError(c.Close(none))
}

func nilActive(r *testjob.Rank) {
	a, err := active.Open(none, r.World, active.Handlers{"echo": func(_ context.Context, _ int, request []byte) ([]byte, error) {
		return request, nil
	}})
	r.NoError(err)
	_, err = a.Call(none, r.Right(), "echo", []byte{1})
	r.NoError(err)
	r.NoError(a.Send(none, r.Right(), "echo", []byte{1}))
	r.NoError(a.Flush(none))
	r.NoError(a.Close(none))
}

func nilHeap(r *testjob.Rank) {
	s, err := farheap.Serve(none, r.World, r.Left())
	r.NoError(err)
	h, err := farheap.Open[int](none, r.World, r.Right())
	r.NoError(err)
	b, err := h.Alloc(none, 4)
	r.NoError(err)
	r.NoError(h.Put(none, b, 0, []int{1}))
	r.NoError(h.Get(none, b, 0, make([]int, 1)))
	r.NoError(h.Flush(none))
	r.NoError(h.Close(none))
	r.NoError(s.Wait(none))
	r.NoError(s.Close(none))
}
