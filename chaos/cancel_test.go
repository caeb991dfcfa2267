package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestCancellationsHarmNoOtherOperation runs random programs whose contexts end at random.
func TestCancellationsHarmNoOtherOperation(t *testing.T) {
	for i := range *cancels {
		c := drawTrial(*firstSeed + uint64(i))
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("repeat it: go test ./chaos -run TestCancellations %s -cancels 1", again(c.seed))
				}
			})
			c.config.Run(t, c.play, c.options()...)
		})
	}
}

// play is the program of a trial of cancellations.
func (t trial) play(ctx context.Context, r *testjob.Rank) {
	p := newPlayer(r, t)
	before := p.heap()
	p.allocate(ctx, r.World)
	p.memory(ctx)
	p.holdsNoMore(p.teams, slabs+halves)(ctx)
	p.holdsNoMore(p.pipes, slabs)(ctx)
	if t.linger { // a connection that a canceled step left behind ends meanwhile
		time.Sleep(peerTimeout * 3 / 2)
	}
	p.memory(ctx)
	p.verifySums(ctx)
	p.NoError(p.w.Free(ctx))
	p.NoError(r.World.Barrier(ctx))
	p.LessOrEqual(p.heap(), before+slabs+halves)
}

// memory makes random steps on the window, and compares it with the model.
func (p *player) memory(ctx context.Context) {
	p.oneSided(ctx, 60)
	p.NoError(p.w.Fence(ctx), "%v: rank %d: Fence", p.trial, p.Me)
	for target := range p.N {
		p.settle(target)
	}
	p.verify(ctx)
	p.NoError(p.World.Barrier(ctx))
}

// halves bounds the memory of teams that some of their members did not get, in bytes.
const halves = 64 << 10

// slabs bounds the memory that rpipe keeps for small pipes, in bytes.
const slabs = 512 << 10

// heap returns how much of this rank's heap is taken, in bytes.
func (p *player) heap() int64 { return team.Of(p.World).Arena().Used() }

// holdsNoMore returns f, which must give back all memory of the heap but slack bytes.
func (p *player) holdsNoMore(f func(context.Context), slack int64) func(context.Context) {
	return func(ctx context.Context) {
		before := p.heap()
		f(ctx)
		p.Eventually(func() bool { return p.heap() <= before+slack }, testwatch.Patience(), time.Millisecond,
			"%v: rank %d: memory is left in the heap", p.trial, p.Me)
	}
}
