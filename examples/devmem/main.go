// Devmem puts from memory of one device to memory of another: each rank puts half of its window into
// the right neighbor's, with a signal behind it. Each rank checks the half that its left neighbor put.
//
// Usage:
//
//	go run ./cmd/grun -n 2 ./examples/devmem [-n ELEMENTS] [-want WAY] [-bounce] [MEMORY...]
//
// Then all ranks add to an element of rank 0, which checks the sum.
//
// Rank r's elements lie in the r-th MEMORY, counted round: a path that device.Open takes, "huge" for huge pages,
// or "-" for the rank's heap. Ranks with the same path take different ranges. With -want, the way of
// the operations must be WAY, such as mapped, or "requests over ibv"; with -want refused, the provider
// must refuse the memory. With -bounce, memory that it refuses is reached through the host's instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

var (
	elements = flag.Int("n", 1<<17, "elements of 8 bytes at each rank")
	bounce   = flag.Bool("bounce", false, "reach memory that the provider refuses through the host's")
	want     = flag.String("want", "", "the way that operations must go, or refused")
)

func main() {
	flag.Parse()
	runtime.Main(run)
}

// run passes data around a ring of windows on device memory, adds into it, and checks both. With
// -want refused, the device must refuse the memory.
func run(ctx context.Context, job *runtime.Job) (err error) {
	world := job.World()
	name := "-"
	if flag.NArg() > 0 {
		name = flag.Arg(world.Rank() % flag.NArg())
	}
	piece, end, err := take(name, world.Rank(), *elements*8)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	on := window.On(piece)
	if *bounce {
		on = window.On(piece, device.Bounce)
	}
	w, err := window.Allocate[uint64](ctx, world, *elements, on)
	if *want == "refused" {
		if !errors.Is(err, driver.ErrKind) {
			return fmt.Errorf("rank %d: the window was not refused: %w", world.Rank(), err)
		}
		fmt.Printf("rank %d on %s: refused: %v\n", world.Rank(), name, err)
		return world.Barrier(ctx)
	}
	if err != nil {
		return err
	}
	if err := pass(ctx, world, w); err != nil {
		return err
	}
	if err := checkPath(ctx, world, w); err != nil {
		return err
	}
	if err := addAll(ctx, world, w); err != nil {
		return err
	}
	fmt.Printf("rank %d on %s: %d bytes came from the left neighbor\n", world.Rank(), name, *elements/2*8)
	return w.Free(ctx)
}

// take opens memory and takes this rank's range of it.
func take(name string, rank, n int) (p *device.Piece, end func() error, err error) {
	var m *device.Memory
	switch name {
	case "-":
		return nil, func() error { return nil }, nil
	case "huge":
		m, err = device.Huge(n)
	default:
		m, err = device.Open(name)
	}
	if err != nil {
		return nil, nil, err
	}
	if name == "huge" {
		rank = 0
	}
	if p, err = m.Take(rank*(n+4095)&^4095, n); err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	clear(p.Bytes())
	return p, func() error { return errors.Join(p.Free(), m.Close()) }, nil
}

// pass puts the first half of this rank's elements to the second half of the right neighbor's. It checks
// the elements that the left neighbor put here.
func pass(ctx context.Context, world *runtime.Team, w *window.Window[uint64]) error {
	me, size, half := world.Rank(), world.Size(), *elements/2
	right, left := (me+1)%size, (me+size-1)%size
	for i := range half {
		w.Local()[i] = uint64(me)<<32 | uint64(i)
	}
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	if err := w.PutNotify(ctx, right, half, w.Local()[:half], window.Signal{Value: 1}); err != nil {
		return err
	}
	if _, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1}); err != nil {
		return err
	}
	for i, v := range w.Local()[half : 2*half] {
		if v != uint64(left)<<32|uint64(i) {
			return fmt.Errorf("rank %d: element %d is %#x", me, half+i, v)
		}
	}
	return nil
}

// checkPath compares the way of operations on the right neighbor with -want.
func checkPath(ctx context.Context, world *runtime.Team, w *window.Window[uint64]) error {
	path, err := w.Path(ctx, (world.Rank()+1)%world.Size())
	if err == nil && *want != "" && path.String() != *want {
		err = fmt.Errorf("rank %d: operations go %v, not %s", world.Rank(), path, *want)
	}
	return err
}

// addAll has all ranks add to element 0 of rank 0, which was 0. Rank 0 checks the sum.
func addAll(ctx context.Context, world *runtime.Team, w *window.Window[uint64]) error {
	if err := w.Fence(ctx); err != nil { // all puts of element 0 have read it
		return err
	}
	if _, err := window.FetchAdd(ctx, w, 0, 0, 1<<20); err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	if sum := w.Local()[0]; world.Rank() == 0 && sum != uint64(world.Size())<<20 {
		return fmt.Errorf("%d atomics add up to %d", world.Size(), sum)
	}
	return nil
}
