//go:build linux

package main

import (
	"context"
	"math"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// An overlapped is a collective call that is started and that a computation overlaps.
type overlapped struct {
	name, osu string
	of        collective // for the lengths of its buffers
	call      func(in, out []float64) collectives.Call
}

// overlappedCalls returns the collective calls that run beside a computation.
func overlappedCalls() []overlapped {
	sum := collectives.Sum[float64]()
	return []overlapped{
		{"broadcast", "osu_ibcast", collective{in: one, out: one}, func(in, _ []float64) collectives.Call {
			return collectives.BroadcastCall(0, in)
		}},
		{"allreduce", "osu_iallreduce", collective{in: one, out: one}, func(in, out []float64) collectives.Call {
			return collectives.AllReduceCall(sum, in, out)
		}},
		{"allgather", "osu_iallgather", collective{in: one, out: each}, func(in, out []float64) collectives.Call {
			return collectives.AllGatherCall(in, out)
		}},
		{"alltoall", "osu_ialltoall", collective{in: each, out: each}, func(in, out []float64) collectives.Call {
			return collectives.AllToAllCall(in, out)
		}},
	}
}

// overlapBenchmarks returns three for each call: the call alone, a computation that takes
// as long, and both at once. Their order is that of printOSUOverlap.
func overlapBenchmarks() (all []benchmark) {
	for _, c := range overlappedCalls() {
		name := "overlap_" + c.name
		for _, b := range []struct {
			part, about     string
			calls, computes bool
		}{
			{"_pure", "a call started and waited for", true, false},
			{"_compute", "a computation as long as the call", false, true},
			{"_overall", "the call started, the computation, the call waited for", true, true},
		} {
			all = append(all, benchmark{name: name + b.part, osu: c.osu, group: name, about: b.about, sized: true, unit: micros(),
				setup: c.measure(b.calls, b.computes)})
		}
		all = append(all, benchmark{name: "beside_" + c.name, about: "the call started, a computation as long as a copy of its bytes at 10 GB/s, the call waited for",
			sized: true, unit: micros(), setup: c.beside()})
	}
	return all
}

// measure prepares the call, a computation that takes as long, or both at the same time.
func (c *overlapped) measure(calls, computes bool) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		t, err := c.of.prepare(h, size, inSlices)
		if err != nil {
			return task{}, err
		}
		pure := func(ctx context.Context, in, out []float64) error {
			return startAndWait(ctx, h.world, c.call(in, out), 0)
		}
		if !computes {
			return t.task(pure), nil
		}
		pace, err := h.pace(ctx, c.name, size, func(ctx context.Context) error { return pure(ctx, t.in[0], t.outs[0]) })
		if err != nil {
			return task{}, err
		}
		made := t.task(func(ctx context.Context, in, out []float64) error {
			if !calls {
				compute(pace)
				return nil
			}
			return startAndWait(ctx, h.world, c.call(in, out), pace)
		})
		made.batch = 1 // where ranks outnumber cores, a computation may hold up all of them
		return made, nil
	}
}

// beside returns the call beside a computation that is the same in all systems.
func (c *overlapped) beside() setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		t, err := c.of.prepare(h, size, inSlices)
		if err != nil {
			return task{}, err
		}
		pace := unitsOf(time.Duration(size) * time.Second / besideRate)
		return t.task(func(ctx context.Context, in, out []float64) error {
			return startAndWait(ctx, h.world, c.call(in, out), pace)
		}), nil
	}
}

// startAndWait starts a call, computes, and waits for the call.
func startAndWait(ctx context.Context, t *runtime.Team, call collectives.Call, work int) error {
	r, err := collectives.Start(ctx, t, call)
	if err != nil {
		return err
	}
	compute(work)
	return r.Wait(ctx)
}

// compute does a number of units of work in the registers of one core. The sum keeps the
// compiler from leaving the loop out.
func compute(units int) {
	sum := 1.
	for range units {
		sum = sum*0.5 + 1
	}
	if sum == 0 {
		panic("overlap: the sum of positive numbers is zero")
	}
}

// A work names the call whose time a computation has.
type work struct {
	name string
	size int
}

// Numbers of calls and of units that pace times.
const (
	pacedCalls = 50
	pacedUnits = 100_000
	// longestWork bounds the computation beside a call that a busy machine held up.
	longestWork = 10 * time.Millisecond
	// besideRate is that of the copy whose time a computation takes, in bytes a second. It is
	// the same in bench/peers.
	besideRate = 10_000_000_000
)

// pace returns the units of work that take as long as a call does alone. All ranks use those
// of rank 0. Kind: collective.
func (h *harness) pace(ctx context.Context, name string, size int, call func(ctx context.Context) error) (int, error) {
	key := work{name, size}
	if units, known := h.paces[key]; known {
		return units, nil
	}
	took, err := paced(ctx, call)
	if err != nil {
		return 0, err
	}
	units := []int64{int64(unitsOf(min(took, longestWork)))}
	if err := collectives.Broadcast(ctx, h.world, 0, units); err != nil {
		return 0, err
	}
	h.paces[key] = int(units[0])
	return h.paces[key], nil
}

// unitsOf returns the units of work that take so long at this rank.
func unitsOf(d time.Duration) int {
	working := time.Duration(math.MaxInt64)
	for range pacedCalls {
		began := clock()
		compute(pacedUnits)
		working = min(working, clock()-began)
	}
	return max(int(pacedUnits*float64(d)/float64(max(working, 1))), 1)
}

// paced returns the mean time of a call, of many one after the other.
func paced(ctx context.Context, call func(ctx context.Context) error) (time.Duration, error) {
	var began time.Duration
	for i := range 2 * pacedCalls {
		if i == pacedCalls { // the first half warms up
			began = clock()
		}
		if err := call(ctx); err != nil {
			return 0, err
		}
	}
	return (clock() - began) / pacedCalls, nil
}
