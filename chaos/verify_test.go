package chaos

import (
	"context"
	"slices"
	"sync/atomic"
)

// verify compares all memory with the model. The ranks of alive make no other step
// meanwhile.
func (p *player) verify(ctx context.Context) {
	for target := range p.N {
		if !p.victims[target] {
			p.verifyCells(ctx, target)
		}
	}
	for _, b := range p.buffers {
		p.False(slices.ContainsFunc(b.mem, func(v int64) bool { return v != stain }),
			"%s: its buffer changed after the call had returned", b.step)
	}
}

func (p *player) verifyCells(ctx context.Context, target int) {
	dst := make([]int64, p.width)
	for c, model := range p.cells[target] {
		p.NoError(p.w.Get(ctx, target, p.cellAt(c), dst), p.at("Get", target))
		p.compare("Get behind a fence", target, c, dst)
		if all := slices.Compact(slices.Clone(dst)); len(all) == 1 {
			model.saw(all[0])
		}
	}
	for i := range p.words[target] {
		p.load(ctx, target, i)
	}
}

// A ledger holds the sums of a rank's steps at each target.
type ledger struct {
	Rank                      int
	Signals, Counted, Guarded []eventCount
}

// verifySums compares this rank's slots and sums with the steps of all members of the team.
func (p *player) verifySums(ctx context.Context) {
	var counted, guarded eventCount
	for _, l := range swap(ctx, p, ledger{p.Me, p.signals, p.counted, p.guarded}) {
		slot, err := p.w.ResetNotify(l.Rank, 0)
		p.NoError(err)
		p.True(l.Signals[p.Me].allows(int64(slot)), "%v: rank %d: %d signals of rank %d, which sent %+v", p.trial, p.Me, slot,
			l.Rank, l.Signals[p.Me])
		counted, guarded = counted.plus(l.Counted[p.Me]), guarded.plus(l.Guarded[p.Me])
	}
	if len(p.victims) > 0 {
		return // no rank knows a victim's additions
	}
	mine := p.w.Local()
	n, below := atomic.LoadInt64(&mine[p.counterAt()]), mine[p.guardedAt()]
	p.True(counted.allows(n), "%v: rank %d: the counter is %d, the ranks made %+v additions", p.trial, p.Me, n, counted)
	p.True(guarded.allows(below), "%v: rank %d: the guarded value is %d, the ranks made %+v additions", p.trial, p.Me, below, guarded)
}
