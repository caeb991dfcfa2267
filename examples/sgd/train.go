package main

import (
	"context"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/examples/internal/progress"
	"github.com/gopgas/gopgas/runtime"
)

// Momentum keeps most of the step before. (Polyak, "Some methods of speeding up
// the convergence of iteration methods", 1964.)
const momentum = 0.9

// A trainer runs stochastic gradient descent at one rank of several, or alone.
type trainer struct {
	o        *options
	net      *network
	pass     *pass
	data     *samples
	batch    []sample  // this rank's share
	grads    []float64 // and behind them the loss
	velocity []float64
	losses   []float64 // of each batch
}

func (o *options) newTrainer(net *network, grads []float64) *trainer {
	return &trainer{o: o, net: net, pass: newPass(net, o.batch), data: newSamples(o.seed), grads: grads, velocity: make([]float64, len(net.params))}
}

// part returns layer l's part of grads; the last has the loss with it.
func (t *trainer) part(l int) []float64 {
	from, to := t.net.layer(l)
	if l == t.net.last() {
		to++
	}
	return t.grads[from:to]
}

// share computes a rank's share of the gradient of one step, into t.grads.
func (t *trainer) share(step, rank, size int, ready func(layer int) error) error {
	from, to := share(t.o.batch, rank, size)
	t.batch = t.batch[:0]
	for i := from; i < to; i++ {
		t.batch = append(t.batch, t.data.draw(step*t.o.batch+i))
	}
	return t.pass.gradient(t.grads, t.batch, 1/float64(t.o.batch), ready)
}

// update changes layer l by its gradient.
func (t *trainer) update(l int) {
	from, to := t.net.layer(l)
	for i := from; i < to; i++ {
		t.velocity[i] = momentum*t.velocity[i] - t.o.rate*t.grads[i]
		t.net.params[i] += t.velocity[i]
	}
}

// An adding adds up the ranks' gradients, a layer at a time.
type adding struct {
	plans []*collectives.Planned
	under []*collectives.Request
}

// newAdding plans an all-reduce in place of each layer's part of the gradient.
// Deterministic adds the ranks' shares from left to right, which one rank can
// compute alone.
func newAdding(ctx context.Context, team *runtime.Team, t *trainer) (*adding, error) {
	a := &adding{under: make([]*collectives.Request, t.net.last()+1)}
	for l := range t.net.last() + 1 {
		part := t.part(l)
		p, err := collectives.Plan(ctx, team, collectives.AllReduceCall(collectives.Sum[float64](), part, part, collectives.Deterministic()))
		if err != nil {
			return nil, err
		}
		a.plans = append(a.plans, p)
	}
	return a, nil
}

// start begins to add the gradients of layer l.
func (a *adding) start(ctx context.Context, l int) (err error) {
	a.under[l], err = a.plans[l].Start(ctx)
	return err
}

// train makes all steps at one rank of a team. While the ranks add up a layer's
// gradients, they compute those of the layer before it. While they add up the
// first layer's, they update the last ones.
func (t *trainer) train(ctx context.Context, team *runtime.Team) error {
	a, err := newAdding(ctx, team, t)
	if err != nil {
		return err
	}
	progress := progress.New(t.o.log, "sgd", team.Rank() == 0)
	for step := range t.o.steps {
		err := t.share(step, team.Rank(), team.Size(), func(l int) error { return a.start(ctx, l) })
		if err != nil {
			return err
		}
		for l := t.net.last(); l >= 0; l-- {
			if err := a.under[l].Wait(ctx); err != nil {
				return err
			}
			t.update(l)
		}
		t.losses = append(t.losses, t.grads[len(t.net.params)])
		progress.Tell("step %d of %d: loss %.4f", step+1, t.o.steps, t.losses[step])
	}
	for _, p := range a.plans {
		if err := p.Free(ctx); err != nil {
			return err
		}
	}
	return nil
}

// alone makes steps on one rank, with each batch divided into the shares of so
// many ranks.
func (o *options) alone(ctx context.Context, ranks, steps int) (*trainer, error) {
	net := newNetwork(o.hidden)
	net.draw(o.seed)
	sum := make([]float64, len(net.params)+1)
	t := o.newTrainer(net, make([]float64, len(sum)))
	for step := range steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for rank := range ranks {
			if err := t.share(step, rank, ranks, func(int) error { return nil }); err != nil {
				return nil, err
			}
			if rank == 0 {
				copy(sum, t.grads)
				continue
			}
			for i, g := range t.grads {
				sum[i] += g
			}
		}
		copy(t.grads, sum)
		for l := range net.last() + 1 {
			t.update(l)
		}
		t.losses = append(t.losses, sum[len(net.params)])
	}
	return t, nil
}

// share returns a rank's range of a batch.
func share(batch, rank, size int) (from, to int) {
	return batch * rank / size, batch * (rank + 1) / size
}
