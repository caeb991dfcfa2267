//go:build linux

package main

import (
	"errors"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// A tuneCall is a collective to measure, with its name in tables.
type tuneCall struct {
	name string
	// in and out: the input and the output have a block for each member.
	in, out bool
	make    func(in, out []float64, opts ...collectives.Option) collectives.Call
	op      bool // it combines
}

const tuneElement = 8

func tuneCalls() []tuneCall { return callsBy(collectives.Sum[float64]()) }

// callsBy returns all collectives, with an operator.
func callsBy(sum collectives.Op[float64]) []tuneCall {
	return []tuneCall{
		{"broadcast", false, false, func(_, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.BroadcastCall(0, out, opts...)
		}, false},
		{"reduce", false, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.ReduceCall(0, sum, in, out, opts...)
		}, true},
		{"all-reduce", false, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.AllReduceCall(sum, in, out, opts...)
		}, true},
		{"gather", false, true, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.GatherCall(0, in, out, opts...)
		}, false},
		{"scatter", true, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.ScatterCall(0, in, out, opts...)
		}, false},
		{"all-gather", false, true, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.AllGatherCall(in, out, opts...)
		}, false},
		{"reduce-scatter", true, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.ReduceScatterCall(sum, in, out, opts...)
		}, true},
		{"all-to-all", true, true, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.AllToAllCall(in, out, opts...)
		}, false},
		{"scan", false, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.ScanCall(sum, in, out, opts...)
		}, true},
		{"exscan", false, false, func(in, out []float64, opts ...collectives.Option) collectives.Call {
			return collectives.ExScanCall(sum, in, out, opts...)
		}, true},
	}
}

// longest returns the number of blocks in the longer of input and output.
func (c *tuneCall) longest(n int) int {
	if c.in || c.out {
		return n
	}
	return 1
}

// call returns the call on count elements, or on blocks of count.
func (c *tuneCall) call(t *runtime.Team, room *tuneRoom, count int, opts ...collectives.Option) collectives.Call {
	length := func(blocks bool) int {
		if blocks {
			return count * t.Size()
		}
		return count
	}
	return c.make(room.in[:length(c.in)], room.out[:length(c.out)], opts...)
}

// A tuneRoom is input and output of calls. Boards use those in the heap in place.
type tuneRoom struct {
	in, out []float64
	free    func() error
}

// allocate makes room for calls with buffers of count elements.
func (t *tuner) allocate(count int) (*tuneRoom, error) {
	in, err := collectives.Alloc[float64](t.world, count)
	if err != nil {
		return nil, err
	}
	out, err := collectives.Alloc[float64](t.world, count)
	if err != nil {
		return nil, errors.Join(err, in.Free())
	}
	room := &tuneRoom{in.Mem(), out.Mem(), func() error { return errors.Join(in.Free(), out.Free()) }}
	room.fill()
	return room, nil
}

// slicesOf makes room in ordinary memory.
func slicesOf(count int) *tuneRoom {
	room := &tuneRoom{make([]float64, count), make([]float64, count), func() error { return nil }}
	room.fill()
	return room
}

// fill sets the input to ones.
func (r *tuneRoom) fill() {
	for i := range r.in {
		r.in[i] = 1
	}
}

// renew rewrites the input of a call of count elements, one number of every cache
// line.
func (r *tuneRoom) renew(count int) {
	for _, mem := range [][]float64{r.in[:count], r.out[:count]} { // a broadcast's output is its root's input
		for i := 0; i < count; i += cacheLine / tuneElement {
			mem[i] = 3 - mem[i] // the next call changes it back: nothing grows
		}
	}
}
