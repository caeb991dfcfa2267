// Sgd trains a small neural network on all ranks: stochastic gradient descent with
// the batches divided among them, as data-parallel training does.
//
//	grun -n 4 ./examples/sgd [-steps 600] [-batch 96] [-hidden 24] [-svg FILE]
//
// All ranks have the whole network. In each step every rank computes the gradient
// of its share of the batch. AllReduce adds the shares up, so that all ranks make
// the same step. Ranks add up a layer's gradients while they compute those of the
// layer before it:
//
//	compute  layer 2 | layer 1 | layer 0 |         update 2 | update 1 | update 0 |
//	add up           | layer 2  | layer 1 | layer 0
//
// They lie in a buffer of the heap (collectives.Alloc), where ranks of one host
// read them in place.
//
//	data.go     samples: three arms of a spiral
//	network.go  the network, and derivatives by back-propagation
//	train.go    the steps, on all ranks and alone
//	report.go   what is printed, drawn and checked
//
// To check the result, rank 0 trains alone with the shares of the ranks, one
// after another. Every parameter must have the same bits at every rank. With
// whole batches rounding differs, and training amplifies it in the end; there the
// first losses must agree. At the end the network must classify new samples.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	steps, batch, hidden int

	rate     float64
	accuracy float64
	seed     uint64
	check    bool
	svg      string
	out      io.Writer // results
	log      io.Writer // progress
}

const help = `usage: grun -n N ./examples/sgd [flags]

Trains a neural network to tell the arms of a spiral apart, on N ranks that
divide each batch among them.

  grun -n 4 ./examples/sgd                                 the defaults, checked
  grun -n 4 ./examples/sgd -svg loss.svg                   the loss, and what was learned
  grun -n 4 --provider tcp ./examples/sgd                  over sockets
  grun -n 4 -x GRUN_EXPLAIN=collectives ./examples/sgd     which algorithm does the calls
  grun -n 4 ./examples/sgd -hidden 256 -batch 512          a longer step, to watch top by

`

func main() {
	o := options{out: os.Stdout, log: os.Stderr}
	flag.IntVar(&o.steps, "steps", 600, "steps to make")
	flag.IntVar(&o.batch, "batch", 96, "samples of a step, of all ranks together")
	flag.IntVar(&o.hidden, "hidden", 24, "width of each of the two hidden layers")
	flag.Float64Var(&o.rate, "rate", 0.2, "how far a step goes")
	flag.Float64Var(&o.accuracy, "accuracy", 0.95, "share of new samples that must be classified correctly, with -check")
	flag.Uint64Var(&o.seed, "seed", 1, "other samples and other weights to begin with")
	flag.BoolVar(&o.check, "check", true, "compare with one rank's result; takes as long again as one rank does")
	flag.StringVar(&o.svg, "svg", "", "draw the loss and the learned regions into this `file`")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), help)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 || o.steps < 1 || o.batch < 1 || o.hidden < 1 {
		fmt.Fprintln(os.Stderr, "sgd: one step, one sample in a batch and one hidden value at least")
		flag.Usage()
		os.Exit(2)
	}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	net := newNetwork(o.hidden)
	if world.Rank() == 0 {
		net.draw(o.seed) // stands for parameters from a file
	}
	if err := collectives.Broadcast(ctx, world, 0, net.params); err != nil {
		return err
	}
	grads, err := collectives.Alloc[float64](world, len(net.params)+1)
	if err != nil {
		return err
	}
	t := o.newTrainer(net, grads.Mem())
	started := time.Now()
	if err := t.train(ctx, world); err != nil {
		return err
	}
	took := time.Since(started)
	right, err := o.test(ctx, world, net)
	if err != nil {
		return err
	}
	if err := grads.Free(); err != nil { // all ranks have come to the test, so none reads grads any more
		return err
	}
	if err := o.report(world, t, right, took); err != nil || !o.check {
		return err
	}
	return o.compare(ctx, world, t, right)
}
