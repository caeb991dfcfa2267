package board

import (
	"bytes"
	"context"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// leased is longer than a chunk, so that members use it in place.
const leased = 1 << 10

// gone is a context of a caller that has given up.
func gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// at returns a member's memory that other members reach, and its place.
func (r *rig) at(m int) ([]byte, Place) { return r.arenas[m][:leased], Place{Region: arenaRegion} }

// TestMembersDoNotUseMemoryThatItsOwnerTookBack has the root of a broadcast give up before the
// other member comes.
func TestMembersDoNotUseMemoryThatItsOwnerTookBack(t *testing.T) {
	r := newRig(t, 2, tiny)
	for m, ctx := range []context.Context{gone(), testwatch.Context(t)} {
		mem, at := r.at(m)
		a := &Args{Elem: 1, Recv: mem, RecvAt: at}
		want := []error{context.Canceled, ErrGone}[m]
		require.ErrorIs(t, r.boards[m].Broadcast(ctx, 1, 1, a), want)
	}
}

// TestReceiversDoNotUseMemoryThatTheSenderTookBack is the same for queues.
func TestReceiversDoNotUseMemoryThatTheSenderTookBack(t *testing.T) {
	r := newEdgeRig(t, 2, tiny)
	g := newDigraph(2)
	g.join(0, 1, 0)
	edges := r.edges(t, g)
	mem, at := r.at(0)
	require.ErrorIs(t, edges[0].AllGather(gone(), 1, 1, &Args{Elem: 1, Send: mem, SendAt: at}), context.Canceled)
	require.ErrorIs(t, edges[1].AllGather(testwatch.Context(t), 1, 1, &Args{Elem: 1, Recv: make([]byte, leased)}), ErrGone)
}

// TestAbandonWaitsForMembersThatUseItsMemory and not for the dead.
func TestAbandonWaitsForMembersThatUseItsMemory(t *testing.T) {
	for name, leave := range map[string]func(b *Board, dead chan struct{}){
		"done": func(b *Board, _ chan struct{}) {
			_, _ = b.leave(context.Background(), 1), b.tell(context.Background())
		},
		"dead": func(_ *Board, dead chan struct{}) { close(dead) },
	} {
		t.Run(name, func(t *testing.T) {
			r, dead := newRig(t, 2, tiny).reachAll(t), make(chan struct{})
			r.boards[0].dead = func(int) bool {
				select {
				case <-dead:
					return true
				default:
					return false
				}
			}
			require.NoError(t, r.boards[1].borrow(0, r.boards[0].next()))
			over := make(chan struct{})
			go func() {
				defer close(over)
				r.boards[0].Abandon(context.Canceled)
			}()
			overAfter(t, over, func() { leave(r.boards[1], dead) })
			require.ErrorIs(t, r.boards[1].borrow(0, 1), ErrGone)
		})
	}
}

// TestProgramOperatorsWriteToTheMembersOwnMemory has an operator outlast the wait of
// the owner of its operands.
func TestProgramOperatorsWriteToTheMembersOwnMemory(t *testing.T) {
	r, begun, returned := newRig(t, 2, tiny).reachAll(t), make(chan struct{}), make(chan struct{})
	r.boards[0].dead = func(int) bool { return true } // so that it does not wait
	call := func(ctx context.Context, m int, combine Combine) error {
		mem, at := r.at(m)
		return r.boards[m].AllReduce(ctx, 1, 1, &Args{Elem: 1, Send: mem, SendAt: at, Recv: mem, RecvAt: at, Combine: combine, ByProgram: true})
	}
	var once sync.Once
	slow := make(chan error, 1)
	go func() {
		slow <- call(testwatch.Context(t), 1, func(dst, _, _ []byte) {
			once.Do(func() { close(begun) })
			<-returned
			dst[0] = 1
		})
	}()
	ctx, cancel := context.WithCancel(testwatch.Context(t))
	go func() {
		<-begun
		cancel()
	}()
	require.ErrorIs(t, call(ctx, 0, func([]byte, []byte, []byte) {}), context.Canceled)
	mine, _ := r.at(0)
	before := bytes.Clone(mine)
	close(returned)
	require.ErrorIs(t, <-slow, ErrGone)
	require.Equal(t, before, mine)
}

// TestDataThatTheOwnerTookBackDuringTheReadIsNoResult has an operator last longer than the owner of an
// operand waits, which gives up when its own part is done.
func TestDataThatTheOwnerTookBackDuringTheReadIsNoResult(t *testing.T) {
	r, begun, returned := newRig(t, 2, tiny).reachAll(t), make(chan struct{}), make(chan struct{})
	r.boards[0].dead = func(int) bool { return true } // so that it does not wait
	call := func(ctx context.Context, m int, combine Combine) error {
		mem, at := r.at(m)
		return r.boards[m].ReduceScatter(ctx, 1, 1, &Args{Elem: 1, Send: mem, SendAt: at, Recv: make([]byte, leased/2), Combine: combine, ByProgram: true})
	}
	slow := make(chan error, 1)
	go func() {
		slow <- call(testwatch.Context(t), 1, func([]byte, []byte, []byte) {
			close(begun)
			<-returned
		})
	}()
	ctx, cancel := context.WithCancel(testwatch.Context(t))
	go func() {
		<-begun
		for finish := &r.boards[1].peers[0].lines[2].turn; finish.Load() != 2; {
			goruntime.Gosched()
		}
		cancel()
	}()
	require.ErrorIs(t, call(ctx, 0, func([]byte, []byte, []byte) {}), context.Canceled)
	close(returned)
	require.ErrorIs(t, <-slow, ErrGone)
}

// TestMemoryThatItsOwnerTookBackReturnsErrGone has the owner take back leased memory.
func TestMemoryThatItsOwnerTookBackReturnsErrGone(t *testing.T) {
	r := newRig(t, 2, tiny)
	mem, at := r.at(0)
	require.ErrorIs(t, r.boards[0].Broadcast(gone(), 1, 1, &Args{Elem: 1, Recv: mem, RecvAt: at}), context.Canceled)
	r.arenas[0] = nil
	require.ErrorIs(t, r.boards[1].Broadcast(testwatch.Context(t), 1, 1, &Args{Elem: 1, Recv: make([]byte, leased)}), ErrGone)
}

// TestGiveUpWaitsForReceiversThatReadItsMemory is the same for queues.
func TestGiveUpWaitsForReceiversThatReadItsMemory(t *testing.T) {
	r := newEdgeRig(t, 2, tiny)
	g := newDigraph(2)
	g.join(0, 1, 0)
	edges, reader := r.edges(t, g), r.queues[1].from[0]
	require.NoError(t, reader.borrow())
	over := make(chan struct{})
	go func() {
		defer close(over)
		mem, at := r.at(0)
		assert.ErrorIs(t, edges[0].AllGather(gone(), 1, 1, &Args{Elem: 1, Send: mem, SendAt: at}), context.Canceled)
	}()
	overAfter(t, over, func() { reader.took(true) })
}

// overAfter checks that over closes after do, not before.
func overAfter(t *testing.T, over chan struct{}, do func()) {
	t.Helper()
	select {
	case <-over:
		require.Fail(t, "the memory is used still")
	case <-time.After(20 * time.Millisecond):
	}
	do()
	select {
	case <-over:
	case <-testwatch.Context(t).Done():
		require.Fail(t, "no member uses the memory any more")
	}
}
