// Paramserver trains a network that reads digits, with its parameters on servers: workers
// push gradients and pull weights. It also measures what each technique of moving them is worth.
//
//	grun -n 4 ./examples/paramserver [-mode all] [-steps 120] [-hidden 768,256] [-rounds 20]
//	grun -n 4 --keep-going ./examples/paramserver -mode async -rounds 0
//	go run ./examples/paramserver -clients 100,200
//
// The first ranks are servers, a quarter of all, and the others workers. The program draws the
// images itself. docs/paramserver.md has the statements of the papers, the tests and the figures.
//
//	model/       images and the network
//	store/       the protocol: servers, workers, death
//	techniques/  a table of techniques, and other systems beside them
//	train.go     the workers' steps
//
// It checks that the network reads new images, the bound of staleness, the sums of all drills and
// the number of copies. It also checks that tensors lie in the window and that gopgas stages no
// byte of them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/examples/paramserver/techniques"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	mode             string
	steps, batch     int
	hidden           [2]int
	rate             float64
	staleness        int
	accuracy         float64
	seed             uint64
	servers          int
	rounds, turns    int
	clients, widths  string
	rows             string
	technique        store.Technique
	out              io.Writer
	piece, testedAll int // elements of a piece of a tensor; new images to read
}

var modes = map[string]store.Mode{"sync": store.Sync, "async": store.Async, "elastic": store.Elastic}

const help = `usage: grun -n N ./examples/paramserver [flags]

Trains a network on a parameter server of N ranks, and measures techniques.

  grun -n 4 ./examples/paramserver                        all modes, and the table
  grun -n 4 ./examples/paramserver -read -mode sync       servers and workers read
  grun -n 4 ./examples/paramserver -copies 2 -buffers 4   as the papers began
  go run ./examples/paramserver -clients 100,200          ranks of one process, request buffers

`

func main() {
	o := parse()
	if o.clients == "" {
		runtime.Main(o.run)
		return
	}
	if err := o.scale(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "paramserver:", err)
		os.Exit(1)
	}
}

// parse returns the options of the command line. It ends the program if one is wrong.
func parse() *options {
	o := &options{out: os.Stdout, piece: 32 << 10, testedAll: 600}
	o.define()
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), help)
		flag.PrintDefaults()
	}
	flag.Parse()
	widths, err := numbers(o.widths)
	if _, known := modes[o.mode]; err != nil || len(widths) != 2 || flag.NArg() > 0 || o.steps < 1 || o.batch < 1 || !known && o.mode != "all" {
		fmt.Fprintln(os.Stderr, "paramserver: a mode of the list, two widths, one step and one image at least")
		flag.Usage()
		os.Exit(2)
	}
	o.hidden = [2]int{widths[0], widths[1]}
	return o
}

// define makes a flag for each option: of the training, and of the table of techniques.
func (o *options) define() {
	flag.StringVar(&o.mode, "mode", "all", "sync, async, elastic or all, one after another")
	flag.IntVar(&o.steps, "steps", 120, "steps of each worker")
	flag.IntVar(&o.batch, "batch", 32, "images of a step of one worker")
	flag.StringVar(&o.widths, "hidden", "768,256", "widths of the two hidden layers")
	flag.Float64Var(&o.rate, "rate", 0.1, "how far a step goes")
	flag.IntVar(&o.staleness, "staleness", 2, "steps that a worker may be ahead of the slowest, in mode async")
	flag.Float64Var(&o.accuracy, "accuracy", 0.8, "share of new images that must be read correctly")
	flag.Uint64Var(&o.seed, "seed", 1, "other images and other weights to begin with")
	flag.IntVar(&o.servers, "servers", 0, "servers; 0: a quarter of the ranks, and one at least")
	flag.IntVar(&o.rounds, "rounds", 20, "rounds of a technique in a turn of the table; 0: no table")
	flag.IntVar(&o.turns, "turns", 5, "turns of each technique in the table")
	flag.StringVar(&o.rows, "rows", "", "the table has only the first row and those with this `text` in their names")
	flag.StringVar(&o.clients, "clients", "", "only a table of request buffers, without grun, for so many workers: `100,200`")
	t := &o.technique
	flag.BoolVar(&t.Read, "read", false, "servers read gradients and workers read weights, instead of writes")
	flag.BoolVar(&t.Poll, "poll", false, "look for signals in a loop, instead of sleeping")
	flag.BoolVar(&t.Ring, "ring", false, "push through ring buffers, instead of tensors in place")
	flag.BoolVar(&t.Apart, "apart", false, "wait in a goroutine apart from the one that processes")
	flag.BoolVar(&t.Loose, "loose", false, "tensors in ordinary memory, which a device registers each time")
	flag.IntVar(&t.Copies, "copies", 0, "user-space copies of a push and a pull: 0, 1, 2")
	flag.IntVar(&t.Buffers, "buffers", 0, "requests of a worker under way at a server; 0: pushes take none")
}

// numbers reads a list of positive numbers.
func numbers(list string) (all []int, err error) {
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no list of numbers", list)
		}
		all = append(all, n)
	}
	return all, nil
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	if o.servers == 0 {
		o.servers = max(1, job.World().Size()/4)
	}
	for _, mode := range []string{"sync", "async", "elastic"} {
		if o.mode == mode || o.mode == "all" {
			if err := o.train(ctx, job, mode); err != nil {
				return err
			}
		}
	}
	if o.rounds == 0 {
		return nil
	}
	rows := techniques.Rows()
	if o.rows != "" {
		rows = append(rows[:1:1], slices.DeleteFunc(rows[1:], func(r techniques.Row) bool { return !strings.Contains(r.Name, o.rows) })...)
	}
	return techniques.Table(ctx, job, techniques.Config{Servers: o.servers, Keys: 8, Piece: o.piece,
		Rounds: o.rounds, Turns: o.turns, Rows: rows, Bare: o.rows != ""}, o.out)
}

// scale compares request buffers for many workers, which are goroutines of this process, with a
// server for every ten.
func (o *options) scale(ctx context.Context) error {
	clients, err := numbers(o.clients)
	rows := techniques.Rows()
	rows = append(rows[len(rows)-4:], rows[0]) // request buffers, and none
	for _, n := range clients {
		servers := min(max(n/10, 1), 10)
		fmt.Fprintf(o.out, "%d workers, %d servers\n", n, servers)
		err = runtime.RunLocal(ctx, n+servers, func(ctx context.Context, job *runtime.Job) error {
			return techniques.Table(ctx, job, techniques.Config{Servers: servers, Keys: 8 * servers, Piece: 1 << 9, Bare: true,
				Rounds: max(o.rounds, 1), Turns: max(o.turns, 1), Rows: rows}, o.out)
		}, runtime.WithFMAMax(0))
		if err != nil {
			return err
		}
	}
	return err
}
