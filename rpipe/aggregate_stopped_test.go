package rpipe_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// aggregates are those that a rank has with others.
type aggregates struct {
	in       *fan.In[int] // from rank 1
	out      *fan.Out[int]
	conveyor *conveyor.Conveyor[int]
	active   *active.Endpoint
}

func openAggregates(ctx context.Context, r *testjob.Rank) (a aggregates, w *rpipe.Writer[int]) {
	var err error
	a.conveyor, err = conveyor.Open[int](ctx, r.World, conveyor.WithBatch(64), conveyor.WithHeap(256), conveyor.WithWidth(2))
	r.NoError(err)
	a.active, err = active.Open(ctx, r.World, active.Handlers{"echo": pipetest.EchoFrom}, active.WithHeap(8192))
	r.NoError(err)
	if r.Me == 0 {
		a.in, err = fan.OpenIn[int](ctx, r.World, []int{1, 1}, pipetest.Small...)
		r.NoError(err)
		a.out, err = fan.OpenOut[int](ctx, r.World, []int{1}, append(pipetest.Small, rpipe.WithName("out"))...)
		r.NoError(err)
		return a, nil
	}
	w, err = rpipe.OpenWriter[int](ctx, r.World, 0, pipetest.Small...)
	r.NoError(err)
	_, err = rpipe.OpenReader[int](ctx, r.World, 0, append(pipetest.Small, rpipe.WithName("out"))...)
	r.NoError(err)
	return a, w
}

// besideTheStopped has rank 1's process stopped: no call of rank 0 lasts longer than its
// context then, whether the two were connected before or not.
func besideTheStopped(connected bool) testjob.Body {
	return func(ctx context.Context, r *testjob.Rank) {
		a, w := openAggregates(ctx, r)
		all, err := r.World.Exchange(ctx, binary.LittleEndian.AppendUint32(nil, uint32(os.Getpid())))
		r.NoError(err)
		if connected {
			a.connect(ctx, r, w)
			r.NoError(r.World.Barrier(ctx))
		}
		if r.Me == 1 {
			<-r.Job.Context().Done() // rank 0 lets this process go on, and ends
			return
		}
		pid := int(binary.LittleEndian.Uint32(all[1]))
		r.NoError(unix.Kill(pid, unix.SIGSTOP))
		late := a.attend(ctx)
		r.NoError(unix.Kill(pid, unix.SIGCONT))
		if len(late) == 0 {
			fmt.Println("all in time")
		}
		for _, name := range late {
			fmt.Println("late:", name)
		}
		os.Exit(3) // the job is over
	}
}

// connect sends something over every pipe.
func (a *aggregates) connect(ctx context.Context, r *testjob.Rank, w *rpipe.Writer[int]) {
	r.NoError(a.conveyor.Push(ctx, 1-r.Me, 1))
	_, _, err := a.conveyor.Pull(ctx)
	r.NoError(err)
	_, err = a.active.Call(ctx, 1-r.Me, "echo", nil)
	r.NoError(err)
	if r.Me == 1 {
		r.NoError(w.Send(ctx, []int{1}))
		return
	}
	_, _, err = a.in.Read(ctx)
	r.NoError(err)
	r.NoError(a.out.Send(ctx, []int{1}))
}

// attend makes calls with little time, and returns the names of those that took much.
func (a *aggregates) attend(ctx context.Context) (late []string) {
	calls := []attempt{
		{"Read of a fan-in", func(ctx context.Context) error { _, _, err := a.in.Read(ctx); return err }},
		{"TryRead of a fan-in", func(ctx context.Context) error { _, _, err := a.in.TryRead(); return err }},
		{"Send of a fan-out", func(ctx context.Context) error { return a.out.Send(ctx, []int{1}) }},
		{"TryPush", func(ctx context.Context) error {
			return errors.Join(a.conveyor.TryPush(1, 1), context.Cause(ctx))
		}},
		{"Push", func(ctx context.Context) error { return a.conveyor.Push(ctx, 1, 1) }},
		{"Pull", func(ctx context.Context) error { _, _, err := a.conveyor.Pull(ctx); return err }},
		{"Call", func(ctx context.Context) error {
			_, err := a.active.Call(ctx, 1, "echo", make([]byte, 1000))
			return err
		}},
		{"Send of a message", func(ctx context.Context) error { return a.active.Send(ctx, 1, "echo", make([]byte, 1000)) }},
	}
	closes := []attempt{
		{"Close of active messages", a.active.Close}, {"Close of a conveyor", a.conveyor.Close},
		{"Close of a fan-in", a.in.Close}, {"Close of a fan-out", a.out.Close},
	}
	for _, c := range calls {
		late = append(late, inTime(ctx, c)...)
	}
	return append(late, inTime(ctx, closes...)...) // all at once
}

// An attempt is a call that may take no longer than its context.
type attempt struct {
	name string
	call func(ctx context.Context) error
}

// inTime makes calls, again and again until they fail or close something. It returns the names of
// those that do not end soon after their context.
func inTime(ctx context.Context, attempts ...attempt) (late []string) {
	const little = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, little)
	defer cancel()
	ended := make([]chan struct{}, len(attempts))
	for i, a := range attempts {
		ended[i] = make(chan struct{})
		go func() {
			defer close(ended[i])
			for a.call(ctx) == nil && ctx.Err() == nil { // until it waits
			}
		}()
	}
	patience := time.After(testwatch.Patience() / 2)
	for i, a := range attempts {
		select {
		case <-ended[i]:
		case <-patience:
			return append(late, a.name)
		}
	}
	return nil
}

func TestCallsEndWithContextBesideStoppedRank(t *testing.T) {
	for _, j := range testjob.Processes(2) {
		j.Idle = true
		for _, body := range []string{"beside the stopped", "beside the stopped, not connected"} {
			if j.Queued && body != "beside the stopped" { // unconnected ends have no queues yet
				continue
			}
			t.Run(j.String()+"/"+body, func(t *testing.T) {
				t.Parallel()
				out := j.Try(t, body)
				require.Contains(t, out.Output, "all in time", "%s\n%s", out.Summary(), out.Output)
			})
		}
	}
}
