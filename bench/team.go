//go:build linux

package main

import (
	"context"
	"math/rand/v2"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// teamBenchmarks returns the benchmarks of new teams. Each sample has a team of its own: half of
// the ranks, in an order at random. Peers do the same in bench/peers/c/team.c.
func teamBenchmarks() []benchmark {
	return []benchmark{
		{name: "team_split", about: "Split into two halves", unit: micros(), setup: costOf(splitStep, true)},
		{name: "team_first_call", about: "first AllReduce of 8 bytes on such a half, whose members are new to each other", unit: micros(), setup: costOf(callStep, true)},
		{name: "team_first_call_connected", about: "the same, members that an earlier team had connected", unit: micros(), setup: costOf(callStep, false)},
		{name: "team_free", about: "Free of such a half after one AllReduce", unit: micros(), setup: costOf(freeStep, true)},
	}
}

// A teamStep is one call in the life of a team.
type teamStep int

const (
	splitStep teamStep = iota
	callStep
	freeStep
	teamSteps
)

// teamSamples is the number of teams of a benchmark. With more, most ranks of a job would be
// connected before.
const teamSamples = 10

// costOf measures one step in the lives of teams, from the first begin of a rank to the last end.
// The teams have other members each, or else the same: then one more team ahead connects them.
func costOf(step teamStep, others bool) func(context.Context, *harness, int) (task, error) {
	return func(ctx context.Context, h *harness, _ int) (task, error) {
		if !others {
			if _, err := h.live(ctx, step, 0); err != nil {
				return task{}, err
			}
		}
		var took []float64
		for i := range uint64(teamSamples) {
			if !others {
				i = 0
			}
			l, err := h.live(ctx, step, i)
			if err != nil {
				return task{}, err
			}
			took = append(took, l.took.Seconds())
		}
		return task{measured: took}, nil
	}
}

// live makes a team, calls AllReduce on it unless step is Split, and frees it. It returns the time
// of step. The members follow from seed and step. Kind: collective.
func (h *harness) live(ctx context.Context, step teamStep, seed uint64) (of lap, err error) {
	place := rand.New(rand.NewPCG(seed, uint64(step))).Perm(h.world.Size())[h.rank]
	one, sum := []float64{1}, []float64{0}
	var half *runtime.Team
	life := [teamSteps]func() error{
		func() error { half, err = h.world.Split(ctx, place%2, place); return err },
		func() error { return collectives.AllReduce(ctx, half, collectives.Sum[float64](), one, sum) },
		func() error { return half.Free(ctx) },
	}
	for i, run := range life {
		if i == int(callStep) && step == splitStep {
			continue
		}
		if err := h.world.Barrier(ctx); err != nil {
			return lap{}, err
		}
		began := clock()
		if err := run(); err != nil {
			return lap{}, err
		}
		ended := clock()
		if i == int(step) {
			if of, err = h.span(ctx, began, ended); err != nil {
				return lap{}, err
			}
		}
	}
	return of, nil
}
