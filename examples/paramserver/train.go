package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gopgas/gopgas/examples/paramserver/model"
	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/runtime"
)

// In mode elastic a worker meets the servers every few steps. All workers together pull by
// 0.9. (Zhang et al., 2015, section 6.)
const (
	apart = 4
	pull  = 0.9
)

// train trains a network, and has each worker test its weights on images that no worker has
// seen.
func (o *options) train(ctx context.Context, job *runtime.Job, mode string) error {
	net := model.New(o.hidden, make([]float32, model.Count(o.hidden)))
	net.Init(o.seed)
	options := store.Options{Servers: o.servers, Tensors: model.Tensors(o.hidden), Piece: o.piece, Mode: modes[mode],
		Staleness: o.staleness, Rate: float32(-o.rate), Technique: o.technique}
	if options.Mode == store.Elastic {
		options.Rate = 1
	}
	st, err := store.New(ctx, job, options, net.Params)
	if err != nil {
		return err
	}
	start := time.Now()
	var result store.Result
	var served, worked error
	var wait sync.WaitGroup
	if st.Serves() {
		wait.Go(func() { result, served = st.Serve(ctx) })
	}
	if w := st.Worker(); w != nil {
		worked = o.work(ctx, w, st.Workers(), options.Mode)
	}
	wait.Wait()
	if worked != nil || served != nil {
		return fmt.Errorf("mode %s: %w", mode, errors.Join(worked, served))
	}
	if job.World().Rank() == 0 {
		if err := o.report(mode, st.Workers(), len(net.Params), result, time.Since(start)); err != nil {
			return err
		}
	}
	if alive := job.Context().Err() == nil; alive { // else a worker died, and no collective call completes
		return st.Free(ctx)
	}
	return nil
}

// work makes a worker's steps, and tests the weights.
func (o *options) work(ctx context.Context, w *store.Worker, workers int, mode store.Mode) error {
	t := &trainer{o: o, w: w, workers: workers, digits: model.NewDigits(o.seed), grads: w.Grads()}
	if err := w.Pull(ctx); err != nil {
		return err
	}
	params := w.Weights()
	if mode == store.Elastic {
		params = slices.Clone(params)
		t.grads = make([]float32, len(params))
	}
	t.pass = model.NewPass(model.New(o.hidden, params))
	for step := range o.steps {
		t.gradient(step)
		if err := t.step(ctx, mode, step, params); err != nil {
			return err
		}
	}
	if err := w.Pull(ctx); err != nil {
		return err
	}
	right, tested := o.test(w, workers)
	return w.Leave(ctx, right, tested)
}

// A trainer is the model at one worker.
type trainer struct {
	o       *options
	w       *store.Worker
	workers int
	digits  *model.Digits
	pass    *model.Pass
	grads   []float32
}

// gradient computes the mean of this worker's batch.
func (t *trainer) gradient(step int) {
	clear(t.grads)
	first := (step*t.workers + t.w.Number()) * t.o.batch
	for i := range t.o.batch {
		t.pass.Gradient(t.digits.Draw(first+i, t.pass.Image()), 1/float32(t.o.batch), t.grads)
	}
}

// step uses the gradient.
func (t *trainer) step(ctx context.Context, mode store.Mode, step int, params []float32) error {
	if mode != store.Elastic {
		return t.w.PushPull(ctx)
	}
	for i, g := range t.grads {
		params[i] -= float32(t.o.rate) * g
	}
	if (step+1)%apart != 0 && step+1 < t.o.steps {
		return nil
	}
	if err := t.w.Pull(ctx); err != nil {
		return err
	}
	alpha, out := float32(pull)/float32(t.workers), t.w.Grads()
	for i, center := range t.w.Weights() {
		out[i] = alpha * (params[i] - center)
		params[i] -= out[i]
	}
	return t.w.Push(ctx)
}

// test returns how many of this worker's share of new images the pulled weights read.
func (o *options) test(w *store.Worker, workers int) (right, tested int) {
	pass, digits := model.NewPass(model.New(o.hidden, w.Weights())), model.NewDigits(^o.seed)
	for i := w.Number(); i < o.testedAll; i += workers {
		if class := digits.Draw(i, pass.Image()); pass.Says() == class {
			right++
		}
		tested++
	}
	return right, tested
}

// report prints what the first server knows, and checks it.
func (o *options) report(mode string, workers, params int, r store.Result, took time.Duration) error {
	share := float64(r.Right) / float64(max(r.Tested, 1))
	fmt.Fprintf(o.out, "mode %s: %d servers, %d workers, %d parameters, %d steps each: %.2f s; %.1f %% of %d new images are read; up to %d steps ahead, %d workers died\n",
		mode, o.servers, workers, params, o.steps, took.Seconds(), 100*share, r.Tested, r.Lead, r.Dead)
	switch {
	case r.Tested > 0 && share < o.accuracy:
		return fmt.Errorf("mode %s: %.3f of new images are read, %.3f should be; try more steps", mode, share, o.accuracy)
	case mode == "async" && r.Lead > o.staleness:
		return fmt.Errorf("a worker was %d steps ahead, %d is the bound", r.Lead, o.staleness)
	}
	return nil
}
