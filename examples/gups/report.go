package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// report prints each rank's rate and that of all ranks, whose time is the slowest
// one's. Kind: collective.
func (o options) report(ctx context.Context, team *runtime.Team, seconds float64) error {
	w, err := window.Allocate[float64](ctx, team, team.Size(), window.WithName("seconds"))
	if err != nil {
		return err
	}
	if err := w.PutValue(ctx, 0, team.Rank(), seconds); err != nil {
		return err
	}
	if err := w.Fence(ctx); err != nil {
		return err
	}
	if team.Rank() == 0 {
		o.print(w.Local())
	}
	return w.Free(ctx)
}

// print prints the rate of each rank, and that of all by the slowest rank's time.
func (o options) print(seconds []float64) {
	ranks := uint64(len(seconds))
	fmt.Fprintf(o.out, "2^%d words, %d updates, %d ranks\n", o.log2, o.updates, ranks)
	slowest := 0.0
	for rank, s := range seconds {
		slowest = max(slowest, s)
		fmt.Fprintf(o.out, "rank %d: %.6f GUPS\n", rank, rate(o.updates/ranks, s))
	}
	fmt.Fprintf(o.out, "all: %.6f GUPS in %.3f s\n", rate(o.updates, slowest), slowest)
}

func rate(updates uint64, seconds float64) float64 { return float64(updates) / seconds / 1e9 }

// check makes the updates again and adds up the wrong words. Every rank fails if
// any word is wrong. Kind: collective.
func (o options) check(ctx context.Context, team *runtime.Team, t *table, from, to uint64) error {
	if _, err := t.timed(ctx, from, to); err != nil {
		return err
	}
	sum, err := window.Allocate[uint64](ctx, team, 1, window.WithName("errors"))
	if err != nil {
		return err
	}
	if err := window.AtomicAdd(ctx, sum, 0, 0, t.errors()); err != nil {
		return err
	}
	if err := sum.Fence(ctx); err != nil {
		return err
	}
	wrong, err := sum.GetValue(ctx, 0, 0)
	if err != nil {
		return err
	}
	if team.Rank() == 0 {
		fmt.Fprintf(o.out, "verified: %d errors in %d words\n", wrong, t.words)
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d words are wrong: updates were lost", wrong, t.words)
	}
	if err := sum.Free(ctx); err != nil {
		return err
	}
	return t.w.Free(ctx)
}
