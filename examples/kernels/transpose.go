package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A transpose is one rank's columns of two square matrices. In each iteration
//
//	b += a transposed
//	a += 1
//
// A rank adds its own tile to b as it transposes it. It transposes the tile for each other rank, and
// puts it into that rank's tiles with a signal. It adds each tile to b when its signal is there. Each tile has two places, for
// even and odd iterations: a rank is at most one iteration ahead, since it needs the tiles
// of all ranks.
type transpose struct {
	team       *runtime.Team
	order      int
	first, end int         // columns of this rank
	a, b       []float64   // columns one after the other
	tile       []float64   // one that this rank sends
	far        [][]float64 // by rank: its tiles, if this rank maps them
	tiles      *window.Window[float64]
}

// newTranspose gives each rank some columns of the matrix. The window has two places for tiles,
// used in turn.
func newTranspose(ctx context.Context, world *runtime.Team, order int) (kernel, error) {
	k := &transpose{team: world, order: order}
	k.first, k.end = part(order, world.Rank(), world.Size())
	n := k.cols() * order
	k.a, k.b = make([]float64, n), make([]float64, n)
	for i := range k.a {
		k.a[i] = float64(k.first*order + i)
	}
	most := (order + world.Size() - 1) / world.Size()
	k.tile = make([]float64, most*most)
	var err error
	k.tiles, err = window.AllocateV[float64](ctx, world, 2*n, window.WithName("tiles"), window.WithSlots(world.Size()))
	if err != nil {
		return nil, err
	}
	k.far = make([][]float64, world.Size())
	for to := range k.far {
		if k.far[to], err = k.tiles.Shared(ctx, to); err != nil && !errors.Is(err, window.ErrNotShared) {
			return nil, err
		}
	}
	return k, nil
}

func (k *transpose) cols() int { return k.end - k.first }

// place returns the place of a rank's tile at another one.
func (k *transpose) place(from, at, iteration int) int {
	first, end := part(k.order, at, k.team.Size())
	row, _ := part(k.order, from, k.team.Size())
	return (iteration%2*k.order + row) * (end - first)
}

// iterate sends a tile to each rank, in an order in which no two ranks send to the same one. Then
// it adds the tiles that have arrived.
func (k *transpose) iterate(ctx context.Context, number int) error {
	me, size := k.team.Rank(), k.team.Size()
	for phase := 1; phase < size; phase++ {
		if err := k.send(ctx, (me+phase)%size, number); err != nil {
			return err
		}
	}
	if k.cols() > 0 {
		turn(k.b[k.first:], k.order, true, k.a, k.order, k.first, k.end)
	}
	for phase := 1; phase < size; phase++ {
		from := (me + size - phase) % size
		arrived := window.Until{Slots: []int{from}, Condition: window.AtLeast, Value: uint64(number + 1)}
		if _, _, err := k.tiles.WaitNotify(ctx, arrived); err != nil {
			return err
		}
		k.add(from, k.tiles.Local()[k.place(from, me, number):])
	}
	return nil
}

// send transposes the tile for a rank: straight into its memory if this rank maps that, or else into a
// tile of its own, which it puts.
func (k *transpose) send(ctx context.Context, to, number int) error {
	me := k.team.Rank()
	first, end := part(k.order, to, k.team.Size())
	n, at := k.cols()*(end-first), k.place(me, to, number)
	tile := k.tile[:n]
	if far := k.far[to]; far != nil {
		tile = far[at : at+n]
	}
	turn(tile, k.cols(), false, k.a, k.order, first, end)
	if k.far[to] != nil {
		tile = nil // it is there
	}
	return k.tiles.PutNotify(ctx, to, at, tile, window.Signal{Slot: me, Value: uint64(number + 1)})
}

// turn transposes the rows [first, end) of columns of so many rows, and adds 1 to them. In out each of
// those rows is a column, and the columns are stride apart; turn adds to it or replaces it. It takes
// four columns at a time, whose values are neighbors in out: the processor loads and stores them together.
func turn(out []float64, stride int, adds bool, columns []float64, rows, first, end int) {
	n := end - first
	column := func(j int) []float64 { return columns[j*rows+first:][:n] }
	j, cols := 0, len(columns)/rows
	for ; j+4 <= cols; j += 4 {
		c0, c1, c2, c3 := column(j), column(j+1), column(j+2), column(j+3)
		for i := range n {
			v0, v1, v2, v3 := c0[i], c1[i], c2[i], c3[i]
			c0[i], c1[i], c2[i], c3[i] = v0+1, v1+1, v2+1, v3+1
			four := (*[4]float64)(out[i*stride+j:])
			if adds {
				v0, v1, v2, v3 = v0+four[0], v1+four[1], v2+four[2], v3+four[3]
			}
			*four = [4]float64{v0, v1, v2, v3}
		}
	}
	for ; j < cols; j++ {
		for i, v := range column(j) {
			columns[j*rows+first+i]++
			if adds {
				v += out[i*stride+j]
			}
			out[i*stride+j] = v
		}
	}
}

// add adds the tile of a rank to b.
func (k *transpose) add(from int, tile []float64) {
	first, end := part(k.order, from, k.team.Size())
	n := end - first
	for j := range k.cols() {
		column := k.b[j*k.order+first:][:n]
		for i, v := range tile[j*n:][:n] {
			column[i] += v
		}
	}
}

// verify compares each value with a formula. All ranks return the same verdict.
func (k *transpose) verify(ctx context.Context, iterations int) error {
	wrong := []int64{0}
	added := float64(iterations*(iterations-1)) / 2
	for j := range k.cols() {
		for i := range k.order {
			want := float64(i*k.order+k.first+j)*float64(iterations) + added
			if k.b[j*k.order+i] != want {
				wrong[0]++
			}
		}
	}
	if err := collectives.AllReduce(ctx, k.team, collectives.Sum[int64](), wrong, wrong); err != nil {
		return err
	}
	if wrong[0] > 0 {
		return fmt.Errorf("%d of %d values are not those that the formula wants", wrong[0], k.order*k.order)
	}
	return nil
}

func (k *transpose) rate() (float64, string) {
	return 2 * 8 * float64(k.order) * float64(k.order), "MB/s"
}

func (k *transpose) free(ctx context.Context) error {
	return k.tiles.Free(ctx)
}
