package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

// reads counts the READs of all ranks, which flush, until all members of a star have set their flags and behind that.
type reads struct {
	first         atomic.Pointer[runtime.Team] // at its first member; nil: the count is off
	flag          uint64                       // of all, before the count
	ahead, behind atomic.Int64
}

// wrap counts the posts of a provider.
func (c *reads) wrap(p driver.Provider) driver.Provider {
	return trace.New(p, trace.WithSink(func(e trace.Event) {
		first := c.first.Load()
		switch {
		case first == nil || e.Kind != trace.Posted || e.Op != driver.OpRead:
		case runtime.FlagOfAll(first) == c.flag:
			c.ahead.Add(1)
		default:
			c.behind.Add(1)
		}
	}))
}

// during counts while all members make a call, which no other call of theirs overlaps.
func (c *reads) during(ctx context.Context, world, half *runtime.Team, call func(context.Context) error) error {
	toggle := func(first *runtime.Team) error {
		err := world.Barrier(ctx)
		if half.Rank() == 0 {
			if first != nil {
				c.flag = runtime.FlagOfAll(first)
			}
			c.first.Store(first)
		}
		return errors.Join(err, world.Barrier(ctx))
	}
	return errors.Join(toggle(half), call(ctx), toggle(nil))
}

// TestFreeFlushesMembersThatGetNoFlagAheadOfItsBarrier of 12 members in a star, if calls of the team wrote there. Of
// those that get a flag, Free flushes those below the first one, and behind the barrier. In a broadcast of member 5 it
// alone writes.
func TestFreeFlushesMembersThatGetNoFlagAheadOfItsBarrier(t *testing.T) {
	const members, root = 12, 5
	for name, c := range map[string]struct {
		call  func(ctx context.Context, world, half *runtime.Team) error
		ahead int64
	}{
		"barrier": {func(ctx context.Context, _, half *runtime.Team) error { return half.Barrier(ctx) }, 0},
		"messages with the first": {func(ctx context.Context, _, half *runtime.Team) error {
			return collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, []int{0})
		}, 0},
		"messages of another member": {func(ctx context.Context, _, half *runtime.Team) error {
			return collectives.Broadcast(ctx, half, root, []int{1}, collectives.WithAlgorithm("linear"))
		}, members - 2},
		"messages of the world": {func(ctx context.Context, world, _ *runtime.Team) error {
			return collectives.Broadcast(ctx, world, root, []int{1}, collectives.WithAlgorithm("linear"))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &reads{}
			require.NoError(t, local(t, members, func(ctx context.Context, job *runtime.Job) error {
				world := job.World()
				half, err := world.Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				return errors.Join(c.call(ctx, world, half), counted.during(ctx, world, half, half.Free))
			}, runtime.WithProvider("tcp"), runtime.WithCores(1), runtime.WithWrap(counted.wrap)))
			require.Equal(t, c.ahead, counted.ahead.Load())
			require.Equal(t, int64(members-1), counted.behind.Load())
		})
	}
}
