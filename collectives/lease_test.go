package collectives_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// A leaseTrial makes a call that uses members' memory in place. Each member brings blocks
// full of its rank + 1.
type leaseTrial struct {
	name string
	call func(root, block int, in, out []byte) collectives.Call
	// want returns the bytes in block b of the output at a member, 0 where it has none.
	want func(me, b, root, n int) int
}

func leaseTrials() []leaseTrial {
	most := collectives.Max[byte]()
	rootOnly := func(me, root, v int) int {
		if me == root {
			return v
		}
		return 0
	}
	firstOnly := func(b, v int) int {
		if b == 0 {
			return v
		}
		return 0
	}
	return []leaseTrial{
		{"Broadcast", func(root, _ int, in, _ []byte) collectives.Call { return collectives.BroadcastCall(root, in) },
			func(int, int, int, int) int { return 0 }}, // in is the output, and checked as such
		{"Scatter", func(root, block int, in, out []byte) collectives.Call {
			return collectives.ScatterCall(root, in, out[:block])
		},
			func(_, b, root, _ int) int { return firstOnly(b, root+1) }},
		{"Gather", func(root, block int, in, out []byte) collectives.Call {
			return collectives.GatherCall(root, in[:block], out)
		},
			func(me, b, root, _ int) int { return rootOnly(me, root, b+1) }},
		{"AllGather", func(_, block int, in, out []byte) collectives.Call { return collectives.AllGatherCall(in[:block], out) },
			func(_, b, _, _ int) int { return b + 1 }},
		{"AllToAll", func(_, _ int, in, out []byte) collectives.Call { return collectives.AllToAllCall(in, out) },
			func(_, b, _, _ int) int { return b + 1 }},
		{"Reduce", func(root, _ int, in, out []byte) collectives.Call { return collectives.ReduceCall(root, most, in, out) },
			func(me, _, root, n int) int { return rootOnly(me, root, n) }},
		{"AllReduce", func(_, _ int, in, out []byte) collectives.Call { return collectives.AllReduceCall(most, in, out) },
			func(_, _, _, n int) int { return n }},
		{"ReduceScatter", func(_, block int, in, out []byte) collectives.Call {
			return collectives.ReduceScatterCall(most, in, out[:block])
		}, func(_, b, _, n int) int { return firstOnly(b, n) }},
		{"NeighborAllToAll", nil, func(me, b, _, n int) int { // on a ring: from the one before, and the next one
			switch b {
			case 0:
				return (me+n-1)%n + 1
			case 1:
				return (me+1)%n + 1
			}
			return 0
		}},
	}
}

// TestCanceledCallGivesTheCallerItsMemoryBack has a member give up calls in which
// other members use its memory. The member writes there as soon as its call has returned.
// No member that succeeds sees that, and no member writes there any more. Calls and
// configurations are paired at random, or all with all when soaking.
func TestCanceledCallGivesTheCallerItsMemoryBack(t *testing.T) {
	rounds, configs := testwatch.Rounds(3), []testjob.Config{{Provider: "loop", Ranks: 3}}
	if !testwatch.Race { // the race detector sees no accesses of shared mappings
		configs = append(configs, testjob.Config{Provider: "shm", Ranks: 2}, testjob.Config{Provider: "shm", Ranks: 4})
	}
	if testjob.Soak() {
		rounds = 30
	}
	first := rand.IntN(len(configs))
	for i, c := range configs {
		for k, l := range leaseTrials() {
			if (first+k)%len(configs) != i && !testjob.Soak() { // each on one configuration
				continue
			}
			t.Run(c.String()+"/"+l.name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					rnd := rand.New(rand.NewPCG(1, 2))
					for round := range rounds {
						l.quit(ctx, r, round%r.N, (round+1)%r.N, time.Duration(rnd.IntN(1500))*time.Microsecond)
						l.quit(ctx, r, round%r.N, round%r.N, time.Duration(rnd.IntN(1500))*time.Microsecond)
					}
				})
			})
		}
	}
}

// quit makes the call with a root, and has a member give up after a while.
func (l *leaseTrial) quit(ctx context.Context, r *testjob.Rank, root, quitter int, after time.Duration) {
	const block = 1 << 20
	enough := errors.New("enough")
	team, err := r.World.Split(ctx, 0, 0)
	r.NoError(err)
	buffer, err := collectives.Alloc[byte](r.World, 2*r.N*block)
	r.NoError(err)
	in, out := buffer.Mem()[:r.N*block], buffer.Mem()[r.N*block:]
	copy(in, bytes.Repeat([]byte{byte(r.Me + 1)}, len(in)))
	var call collectives.Call
	if l.call != nil {
		call = l.call(root, block, in, out)
	} else {
		ring, err := collectives.NewCart(ctx, team, []int{r.N}, []bool{true})
		r.NoError(err)
		call = collectives.NeighborAllToAllCall(ring.Graph, in[:2*block], out[:2*block])
	}
	plan, err := collectives.Plan(ctx, team, call)
	r.NoError(err)
	r.NoError(r.World.Barrier(ctx))
	mine, cancel := ctx, context.CancelFunc(func() {})
	if r.Me == quitter {
		mine, cancel = context.WithTimeoutCause(ctx, after, enough)
	}
	err = plan.Run(mine)
	cancel()
	garbage := bytes.Repeat([]byte{0xee}, len(in))
	switch {
	case err == nil && l.name == "Broadcast":
		r.True(bytes.Equal(bytes.Repeat([]byte{byte(root + 1)}, len(in)), in), "the root's new data was seen")
	case err == nil:
		for b := range r.N {
			if v := l.want(r.Me, b, root, r.N); v != 0 {
				r.True(bytes.Equal(bytes.Repeat([]byte{byte(v)}, block), out[b*block:][:block]), "new data of a member that gave up was seen")
			}
		}
	default:
		r.True(errors.Is(err, runtime.ErrTeamBroken) || r.Me == quitter && errors.Is(err, enough), "%v", err)
		copy(in, garbage)
		copy(out, garbage)
	}
	r.NoError(r.World.Barrier(ctx))
	if err != nil {
		r.True(bytes.Equal(garbage, in) && bytes.Equal(garbage, out), "memory was written that was the caller's again")
	}
	r.NoError(r.World.Barrier(ctx))
	r.NoError(buffer.Free())
	_ = team.Free(ctx) // a member that has succeeded learns of it here
}

// TestSlowOperatorDoesNotWriteToMemoryOfAnotherMember has an operator of the program work longer
// than the owner of its memory waits for it.
func TestSlowOperatorDoesNotWriteToMemoryOfAnotherMember(t *testing.T) {
	allReduce := func(op collectives.Op[byte], in, out []byte) collectives.Call {
		return collectives.AllReduceCall(op, in, out)
	}
	reduce := func(op collectives.Op[byte], in, out []byte) collectives.Call {
		return collectives.ReduceCall(0, op, in, out)
	}
	t.Run("one host", func(t *testing.T) {
		t.Parallel()
		outlast(t, testjob.Config{Provider: "shm", Ranks: 2}, allReduce)
	})
	t.Run("two hosts", func(t *testing.T) {
		t.Parallel()
		outlast(t, testjob.Config{Provider: "auto", Ranks: 4, Hosts: "aabb"}, reduce)
	})
}

// outlast has rank 0 give a call up while rank 1's operator is at work, which waits until
// rank 0 has its memory back.
func outlast(t *testing.T, c testjob.Config, call func(op collectives.Op[byte], in, out []byte) collectives.Call) {
	const size = 1 << 20 // in place also where a host has two members
	enough := errors.New("enough")
	begun, returned := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		buffer, err := collectives.Alloc[byte](r.World, 2*size)
		r.NoError(err)
		op := collectives.NewSliceOp("slow", true, func(dst, left, right []byte) {
			if r.Me == 1 {
				once.Do(func() { close(begun) })
				select {
				case <-returned:
				case <-ctx.Done():
				}
			}
			for i := range dst {
				dst[i] = left[i] ^ right[i]
			}
		})
		buffer.Mem()[0], buffer.Mem()[size-1] = byte(r.Me), byte(r.Me)
		plan, err := collectives.Plan(ctx, team, call(op, buffer.Mem()[:size], buffer.Mem()[size:]))
		r.NoError(err)
		mine, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if r.Me == 0 {
			go func() {
				<-begun
				cancel(enough)
			}()
		}
		err = plan.Run(mine)
		if r.Me == 0 {
			r.ErrorIs(err, enough)
			garbage := bytes.Repeat([]byte{0xee}, 2*size)
			copy(buffer.Mem(), garbage)
			close(returned)
			r.NoError(r.World.Barrier(ctx))
			r.True(bytes.Equal(garbage, buffer.Mem()), "memory was written that was the caller's again")
			return
		}
		if r.Me == 1 {
			r.ErrorIs(err, runtime.ErrTeamBroken)
		} // other members may have done their part before
		r.NoError(r.World.Barrier(ctx))
	})
}
