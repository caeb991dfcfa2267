package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// local runs body on n ranks under a watchdog.
func local(t *testing.T, n int, body runtime.Body, opts ...runtime.Option) error {
	t.Helper()
	return testjob.RunLocal(t.Context(), n, body, opts...)
}

// barriers lists the kinds of barriers, with their options and sizes of teams.
var barriers = map[string]struct {
	opts  []runtime.Option
	of    []int
	hosts func(rank int) string // nil: one for all
}{
	"pair":          {nil, []int{2}, nil},
	"central":       {nil, []int{1, 3, 4, 7, 8}, nil},
	"first opens":   {[]runtime.Option{runtime.WithCores(1)}, []int{10, 32}, nil},
	"mapped tree":   {[]runtime.Option{runtime.WithCores(1)}, []int{33}, nil},
	"dissemination": {[]runtime.Option{runtime.WithFMAMax(0), runtime.WithCores(100)}, []int{2, 3, 4, 7, 8}, nil},
	"tree":          {[]runtime.Option{runtime.WithFMAMax(0), runtime.WithCores(1)}, []int{2, 3, 8, 33, 75}, nil},
	"star":          {[]runtime.Option{runtime.WithFMAMax(0), runtime.WithCores(1)}, []int{9, 10, 32}, nil},
	"led by turns":  {nil, []int{3, 4, 7, 8}, func(rank int) string { return "ab"[rank%2:][:1] }},
	"led in rows":   {nil, []int{3, 5, 8, 30}, func(rank int) string { return fmt.Sprint(bits.Len(uint(rank))) }},
	"led by flags":  {[]runtime.Option{runtime.WithFMAMax(0)}, []int{4, 7}, func(rank int) string { return fmt.Sprint(rank / 3) }},
	"one each":      {nil, []int{2, 3, 5}, func(rank int) string { return fmt.Sprint(rank) }},
}

func eachBarrier(t *testing.T, test func(t *testing.T, n int, opts []runtime.Option)) {
	for name, b := range barriers {
		for _, n := range b.of {
			opts := b.opts
			if b.hosts != nil {
				var names []string
				for rank := range n {
					names = append(names, b.hosts(rank))
				}
				opts = append(slices.Clip(opts), runtime.WithHosts(names...))
			}
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { test(t, n, opts) })
		}
	}
}

func TestBarrierWaitsForAllMembers(t *testing.T) {
	eachBarrier(t, func(t *testing.T, n int, opts []runtime.Option) {
		arrived, rounds := make([]int, n), testwatch.Rounds(300/n)
		require.NoError(t, local(t, n, func(ctx context.Context, job *runtime.Job) error {
			world := job.World()
			for round := 1; round <= rounds; round++ {
				arrived[world.Rank()] = round
				if err := world.Barrier(ctx); err != nil {
					return err
				}
				for r, got := range arrived {
					if got != round {
						return fmt.Errorf("round %d: rank %d is in %d", round, r, got)
					}
				}
				if err := world.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}, opts...))
	})
}

// TestBarrierThatMissesARingEndsAfterAPause has rank 1 arrive without a ring while rank 0 sleeps.
func TestBarrierThatMissesARingEndsAfterAPause(t *testing.T) {
	parked := make(chan struct{})
	require.NoError(t, local(t, 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		if world.Rank() == 1 {
			if err := runtime.Silence(ctx, world); err != nil {
				return err
			}
			<-parked
			return world.Barrier(ctx)
		}
		bell, ended := team.Of(world).Bell(), make(chan error, 1)
		before := bell.Parks()
		go func() { ended <- world.Barrier(ctx) }()
		for bell.Parks() == before && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		close(parked)
		return <-ended
	}))
}

func TestBarrierMismatchNamesMember(t *testing.T) {
	eachBarrier(t, func(t *testing.T, n int, opts []runtime.Option) {
		if n == 1 {
			return
		}
		odd := n / 2
		require.NoError(t, local(t, n, func(ctx context.Context, job *runtime.Job) error {
			world := job.World()
			kind := team.Barrier
			if world.Rank() == odd {
				kind = team.Fence
			}
			err := team.Of(world).Sync(ctx, kind)
			var m *runtime.MismatchError
			switch {
			case !errors.As(err, &m):
				return fmt.Errorf("%s met another call: %w", kind, err)
			case m.Rank != odd && m.Other != odd || (m.Rank == odd) != (m.Call == "Fence") || (m.Other == odd) != (m.OtherDid == "Fence"):
				return fmt.Errorf("rank %d is to blame, not: %w", odd, err)
			}
			return nil
		}, opts...))
	})
}
