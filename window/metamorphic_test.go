package window_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

// TestRandomProgramGivesTheSameMemoryOnAllTransports runs one program on every
// transport, and compares each with the model. A provider is disturbed or not, at random.
// When soaking, each program runs in both ways. With -test.short there are few programs.
func TestRandomProgramGivesTheSameMemoryOnAllTransports(t *testing.T) {
	programs := "15"
	if testing.Short() {
		programs = "4"
	}
	if !testjob.Soak() {
		if err := flag.Set("rapid.checks", programs); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := drawProgram(rt, rapid.SampledFrom([]int{1, 2, 3, 5}).Draw(rt, "ranks"))
		trouble := faulty.Plan{Seed: rapid.Uint64().Draw(rt, "seed"), DelayStarts: 0.2, DelayCompletions: 0.3,
			Reorder: 0.5, PartialPosts: 0.3, QueueFull: 0.1, MaxDelay: 50 * time.Microsecond}
		for _, c := range testjob.Selected(p.ranks) {
			calm := rapid.Bool().Draw(rt, "calm")
			if calm || testjob.Soak() {
				check(t, rt, c, p)
			}
			if !calm || testjob.Soak() {
				check(t, rt, c, p, disturbed(trouble))
			}
		}
	})
}

func check(t *testing.T, rt *rapid.T, c testjob.Config, p *program, opts ...runtime.Option) {
	err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
		if err := p.run(ctx, r, c.Atomics == "nic"); err != nil {
			r.Job.Abort(err)
		}
	}, opts...)
	if err != nil {
		rt.Fatalf("on %v: %v", c, err)
	}
}

// run does this rank's part of the program and all of the model. Memory of a device whose atomics are the device's own does
// not bounce.
func (p *program) run(ctx context.Context, r *testjob.Rank, deviceAtomics bool) error {
	kind := driver.KindBAR
	if deviceAtomics {
		kind = driver.KindDAX
	}
	s, err := newStage(ctx, r, p.home, kind)
	if err != nil {
		return err
	}
	m := p.memory()
	for round, now := range p.rounds {
		if err := s.begin(ctx, &now); err != nil {
			return err
		}
		for i, a := range now.actions {
			want := m.model(round, a)
			if a.origin != r.Me {
				continue
			}
			got, err := play(ctx, s, round, a)
			if err != nil {
				return fmt.Errorf("round %d, action %d, %+v: %w", round, i, a, err)
			}
			if want != nil && !slices.Equal(got, want) {
				return fmt.Errorf("round %d, action %d, %+v: read %d instead of %d", round, i, a, got, want)
			}
		}
		if err := s.end(ctx, &now); err != nil {
			return err
		}
		if err := s.compare(m[r.Me]); err != nil {
			return fmt.Errorf("rank %d after round %d: %w", r.Me, round, err)
		}
		if err := r.World.Barrier(ctx); err != nil {
			return err
		}
		if err := s.renew(ctx, round, now.renew); err != nil {
			return err
		}
	}
	err = errors.Join(s.heads.Free(ctx), s.windows[direct].Free(ctx))
	s.giveBack()
	return err
}

func (s *stage) compare(want []uint64) error {
	w := s.windows[direct]
	if got := w.Local()[:elements]; !slices.Equal(got, want[:elements]) {
		return fmt.Errorf("memory is %d instead of %d", got, want[:elements])
	}
	if got := s.attached; !slices.Equal(got, want[attached:slots]) {
		return fmt.Errorf("attached memory is %d instead of %d", got, want[attached:slots])
	}
	for i, v := range want[:elements] {
		_, got, ok, err := window.TestUntil(w, window.Elements[uint64]{At: []int{i}, Value: v})
		if !ok {
			return errors.Join(err, fmt.Errorf("element %d holds %d instead of %d", i, got, v))
		}
	}
	for slot, v := range want[slots:] {
		_, got, ok, err := w.TestNotify(window.Until{Slots: []int{slot}, Value: v})
		if !ok {
			return errors.Join(err, fmt.Errorf("slot %d holds %d instead of %d", slot, got, v))
		}
	}
	return nil
}
