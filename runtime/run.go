package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/gopgas/gopgas/internal/wait"
)

// A Body is the function that a rank runs. ctx ends when the job is aborted or
// interrupted. It does not end when another rank dies, so that programs may go on;
// [Job.Context] does.
type Body func(ctx context.Context, job *Job) error

// Main runs body as this process's rank and exits. It exits with 0 once every rank is
// done, else it prints the error and exits with 1. Under grun, grun prints the error,
// and prints the same error of many ranks once. Main is the whole of a main function,
// and works once: see [Run]. Kind: collective.
func Main(body Body, opts ...Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, body, opts, exit)
	stop()
	if err != nil {
		exit(err)
	}
}

// exit ends a program that failed.
func exit(err error) {
	complain(fmt.Sprintf("%s: %v", filepath.Base(os.Args[0]), err))
	os.Exit(1)
}

// Run joins the job, runs body, and closes the job. An error of body aborts the job:
// all other ranks get [ErrAborted]. A rank counts as dead if its body ends its
// goroutine, as the standard library's runtime.Goexit and testing.T.FailNow do. All
// other ranks then get [ErrRankDead], and Run does not return.
//
// Under grun a process joins its job once: a second Run or [Init] returns
// [ErrJoinedBefore]. Kind: collective.
func Run(ctx context.Context, body Body, opts ...Option) error {
	return start(ctx, body, opts, func(error) {})
}

// start joins the job and runs body in it. Run and RunLocal call it for each rank.
func start(ctx context.Context, body Body, opts []Option, vanished func(error)) error {
	ctx = wait.Context(ctx)
	job, err := Init(ctx, opts...)
	if err != nil {
		return err
	}
	return job.run(ctx, body, vanished)
}

// run runs body and closes the job. When body ends this goroutine, run does not return,
// and passes the error to vanished. A panic of body goes on at once, with the job as it
// is.
func (j *Job) run(ctx context.Context, body Body, vanished func(error)) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			panic(p)
		}
		vanished(j.vanish())
	}()
	err = j.runBody(ctx, body)
	returned = true
	return err
}

// vanish leaves the job after the body ended its goroutine. This rank did not close the
// job, so it counts as dead.
func (j *Job) vanish() error {
	const what = "body ended without returning"
	err := fmt.Errorf("rank %d: %s: it called runtime.Goexit, or testing.T.FailNow", j.fabric.Rank(), what)
	return errors.Join(err, j.die(context.Background(), "its "+what))
}

// runBody runs a program's body and closes the job. An error of the body aborts the job, so that
// other ranks do not wait for this one.
func (j *Job) runBody(ctx context.Context, body Body) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(j.aborted, func() { cancel(context.Cause(j.aborted)) })()
	if err := body(inner, j); err != nil {
		err = fmt.Errorf("rank %d: %w", j.fabric.Rank(), err)
		j.Abort(err)
		return errors.Join(err, j.shutdown(ctx))
	}
	if err := j.Close(inner); err != nil {
		return fmt.Errorf("rank %d: close the job: %w", j.fabric.Rank(), err)
	}
	return nil
}
