package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/examples/internal/plot"
	"github.com/gopgas/gopgas/runtime"
)

const (
	// tests is the number of new samples that try the network.
	tests = 3000
	// drift bounds the effect of rounding on the loss in the first steps. It begins
	// in the 16th digit and grows with every step without end, so later losses prove
	// nothing.
	drift = 1e-9
	early = 25
)

// test returns the number of new samples that the network classifies correctly.
// Each rank tries its share. Kind: collective.
func (o *options) test(ctx context.Context, team *runtime.Team, net *network) (int64, error) {
	p, data := newPass(net, 1), newSamples(^o.seed)
	from, to := share(tests, team.Rank(), team.Size())
	right := []int64{0}
	for i := from; i < to; i++ {
		if s := data.draw(i); p.says(s.at) == s.class {
			right[0]++
		}
	}
	err := collectives.AllReduce(ctx, team, collectives.Sum[int64](), right, right)
	return right[0], err
}

// says returns the likeliest class.
func (p *pass) says(at [2]float64) int {
	probs := p.forward(0, at)
	return slices.Index(probs, slices.Max(probs))
}

// report prints the results at rank 0, and draws them. Kind: local.
func (o *options) report(team *runtime.Team, t *trainer, right int64, took time.Duration) error {
	if team.Rank() != 0 {
		return nil
	}
	fmt.Fprintf(o.out, "%d parameters, %d steps with %d samples each, %d ranks: %.3f s, %.3f ms a step\n",
		len(t.net.params), o.steps, o.batch, team.Size(), took.Seconds(), took.Seconds()*1e3/float64(o.steps))
	fmt.Fprintf(o.out, "loss %.4f at first, %.4f at last; %.1f %% of %d new samples are classified correctly\n",
		t.losses[0], t.losses[o.steps-1], 100*float64(right)/tests, tests)
	if o.svg == "" {
		return nil
	}
	return o.draw(t)
}

// compare has rank 0 train alone; every rank compares its parameters with the
// result. Kind: collective.
func (o *options) compare(ctx context.Context, team *runtime.Team, t *trainer, right int64) error {
	want := make([]float64, len(t.net.params))
	if team.Rank() == 0 {
		if err := o.compareLosses(ctx, t); err != nil {
			return err
		}
		one, err := o.alone(ctx, team.Size(), o.steps)
		if err != nil {
			return err
		}
		want = one.net.params
	}
	if err := collectives.Broadcast(ctx, team, 0, want); err != nil {
		return err
	}
	for i, v := range t.net.params {
		if v != want[i] {
			return fmt.Errorf("parameter %d at rank %d is %v, one rank alone has %v", i, team.Rank(), v, want[i])
		}
	}
	if got := float64(right) / tests; got < o.accuracy {
		return fmt.Errorf("%.1f %% of new samples are classified correctly, which should be %.1f; try more steps, or a smaller rate", 100*got, 100*o.accuracy)
	}
	if team.Rank() == 0 {
		fmt.Fprintf(o.out, "checked: %d ranks have the bits of one rank that adds up as many shares\n", team.Size())
	}
	return nil
}

// compareLosses trains with whole batches for a while, and compares the losses.
func (o *options) compareLosses(ctx context.Context, t *trainer) error {
	whole, err := o.alone(ctx, 1, min(early, o.steps))
	if err != nil {
		return err
	}
	for step, want := range whole.losses {
		if got := t.losses[step]; !(math.Abs(got-want) <= drift*want) { // NaN is wrong, too
			return fmt.Errorf("the loss of step %d is %v, with whole batches it is %v", step, got, want)
		}
	}
	return nil
}

// draw draws the loss, and the regions in which the network sees each class with
// samples of the classes.
func (o *options) draw(t *trainer) error {
	const smooth, grid, shown = 20, 80, 600
	loss := &plot.Panel{Title: fmt.Sprintf("%d samples a step", o.batch), X: "step", Y: "loss"}
	var each, mean []plot.Point
	for i, v := range t.losses {
		each = append(each, plot.Point{X: float64(i), Y: v})
		sum, first := 0.0, max(0, i-smooth+1)
		for _, v := range t.losses[first : i+1] {
			sum += v
		}
		mean = append(mean, plot.Point{X: float64(i), Y: sum / float64(i+1-first)})
	}
	loss.Line(4, each)
	loss.Line(0, mean)

	seen := &plot.Panel{Title: "learned regions, and samples"}
	kinds := make([][]plot.Point, 2*arms)
	p, data := newPass(t.net, 1), newSamples(^o.seed)
	for i := range grid * grid {
		at := [2]float64{2.4*float64(i%grid)/grid - 1.2, 2.4*float64(i/grid)/grid - 1.2}
		kinds[p.says(at)] = append(kinds[p.says(at)], plot.Point{X: at[0], Y: at[1]})
	}
	for i := range shown {
		s := data.draw(i)
		kinds[arms+s.class] = append(kinds[arms+s.class], plot.Point{X: s.at[0], Y: s.at[1]})
	}
	for kind, dots := range kinds {
		seen.Dots(kind, dots)
	}
	file, err := os.Create(o.svg)
	if err != nil {
		return err
	}
	return errors.Join(plot.Write(file, loss, seen), file.Close())
}
