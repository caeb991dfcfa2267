// Farmemory keeps a table of keys and values in the memory of ranks that compute
// nothing. A quarter of the ranks, at least one, are servers: they open their memory
// and wait. The rest are the clients: they allocate there, put, get, update and free
// by one-sided operations only.
//
//	grun -n 4 ./examples/farmemory [-keys 500] [-ops 4000] [-shelf 128K]
//
// Each client has a table of its own: an index of its keys in its own memory, and
// a *shelf* at each server for the values.
//
//	client 0   index ---> shelf at server 0, shelf at server 1, ...
//	client 1   index ---> ...
//
// When the shelves are full, the table forgets some key, as a cache would. The
// client compares every value that it reads with the last one stored, and at the
// end it reads all of them. With one rank, that rank serves itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct {
	keys  int
	ops   int
	shelf int
	out   io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.IntVar(&o.keys, "keys", 500, "different keys of each client")
	flag.IntVar(&o.ops, "ops", 4000, "operations of each client")
	shelf := flag.String("shelf", "128K", "memory of each server for each client, a multiple of 64 bytes")
	flag.Parse()
	size, err := runtime.ParseSize(*shelf)
	if err != nil || flag.NArg() > 0 || o.keys < 1 || o.ops < 0 {
		fmt.Fprintln(os.Stderr, "usage: grun -n N ./examples/farmemory [flags]")
		flag.PrintDefaults()
		os.Exit(2)
	}
	o.shelf = int(size)
	runtime.Main(o.run)
}

// servers returns how many of n ranks serve memory: the last ones.
func servers(n int) int { return max(1, n/4) }

// run runs at each rank.
func (o options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	n := world.Size()
	if n == 1 {
		return o.both(ctx, world)
	}
	clients := n - servers(n)
	role := 0
	if world.Rank() >= clients {
		role = 1
	}
	team, err := world.Split(ctx, role, world.Rank())
	if err != nil {
		return err
	}
	if role == 1 {
		return o.serve(ctx, world, clients)
	}
	return o.use(ctx, world, team)
}

// serve gives memory to each of so many clients, and waits until they are done.
func (o options) serve(ctx context.Context, world *runtime.Team, clients int) error {
	shelves := make([]*farheap.Server, clients)
	for client := range shelves {
		var err error
		if shelves[client], err = farheap.Serve(ctx, world, client, farheap.WithHeap(o.shelf)); err != nil {
			return err
		}
	}
	for _, s := range shelves {
		if err := errors.Join(s.Wait(ctx), s.Close(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// use runs a client on a table whose values lie at the servers.
func (o options) use(ctx context.Context, world, clients *runtime.Team) error {
	t := newTable()
	for server := clients.Size(); server < world.Size(); server++ {
		if err := t.addShelf(ctx, world, server, o.shelf); err != nil {
			return err
		}
	}
	return o.workAndReport(ctx, clients, t)
}

// both serves and uses memory at one rank.
func (o options) both(ctx context.Context, world *runtime.Team) error {
	s, err := farheap.Serve(ctx, world, 0, farheap.WithHeap(o.shelf))
	if err != nil {
		return err
	}
	t := newTable()
	if err := t.addShelf(ctx, world, 0, o.shelf); err != nil {
		return err
	}
	if err := o.workAndReport(ctx, world, t); err != nil {
		return err
	}
	return errors.Join(s.Wait(ctx), s.Close(ctx))
}
