package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// A Body is what a rank does. ctx ends when the job is aborted or interrupted;
// it does not end when another rank dies, so that programs may go on ([Job.Context]
// does).
type Body func(ctx context.Context, job *Job) error

// Main runs body as this process's rank and exits: with 0 once every rank is
// done, else with 1 after printing the error. It is the whole of a main
// function. Kind: collective.
func Main(body Body, opts ...Option) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, body, opts...)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// Run joins the job, runs body, and closes the job. An error of body aborts
// the job: the other ranks get [ErrAborted]. Kind: collective.
func Run(ctx context.Context, body Body, opts ...Option) error {
	job, err := Init(ctx, opts...)
	if err != nil {
		return err
	}
	return job.run(ctx, body)
}

func (j *Job) run(ctx context.Context, body Body) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(j.aborted, func() { cancel(context.Cause(j.aborted)) })()
	if err := body(ctx, j); err != nil {
		err = fmt.Errorf("rank %d: %w", j.fabric.Rank(), err)
		j.Abort(err)
		return errors.Join(err, j.shutdown())
	}
	if err := j.Close(ctx); err != nil {
		return fmt.Errorf("rank %d: close the job: %w", j.fabric.Rank(), err)
	}
	return nil
}
