package main

import (
	"context"
	"hash/fnv"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Plan announces a rank's additions to a table: the number of words, and of
// their bytes, at each rank that will own some of them.
type Plan struct {
	hash  func(word string) uint64
	needs []need // by owner
}

// A need is how much of a table is for one rank.
type need struct{ words, bytes uint64 }

// NewPlan returns a plan of no additions, to a table of that many ranks.
func NewPlan(ranks int) *Plan {
	return &Plan{hash: fnv64, needs: make([]need, ranks)}
}

// Add plans additions of a word, any number of times. Kind: local.
func (p *Plan) Add(word string) {
	n := &p.needs[p.owner(p.hash(word))]
	n.words++
	n.bytes += uint64(headSize + len(word))
}

// owner returns the rank that holds a word.
func (p *Plan) owner(hash uint64) int { return int(hash % uint64(len(p.needs))) }

// fnv64 returns a hash of a word.
func fnv64(word string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(word))
	return h.Sum64()
}

// extent is the size on which the ranks agree.
type extent struct {
	words, bytes uint64    // largest need of any one rank's part
	reserves     []reserve // by owner
}

// A reserve is a range of an owner's key bytes that one rank alone fills.
type reserve struct{ next, end int }

// Words of the window: the needs of all ranks at each owner, and at rank 0 the
// largest of them.
const (
	wantWords = iota
	wantBytes
	mostWords
	mostBytes
	planWords
)

// agree adds up all ranks' plans. The addition of this rank's bytes reserves
// them: the sum before it is the begin of this rank's range. Kind: collective.
func (p *Plan) agree(ctx context.Context, team *runtime.Team) (e extent, err error) {
	w, err := window.Allocate[uint64](ctx, team, planWords, window.WithName("plan"))
	if err != nil {
		return e, err
	}
	e.reserves = make([]reserve, team.Size())
	for i := range p.needs {
		owner := (team.Rank() + i) % team.Size() // so that not all ranks begin at rank 0
		n := p.needs[owner]
		if _, err := window.FetchAdd(ctx, w, owner, wantWords, n.words); err != nil {
			return e, err
		}
		from, err := window.FetchAdd(ctx, w, owner, wantBytes, n.bytes)
		if err != nil {
			return e, err
		}
		e.reserves[owner] = reserve{int(from), int(from + n.bytes)}
	}
	if err := w.Fence(ctx); err != nil {
		return e, err
	}
	if e.words, err = maximum(ctx, w, mostWords, w.Local()[wantWords]); err != nil {
		return e, err
	}
	if e.bytes, err = maximum(ctx, w, mostBytes, w.Local()[wantBytes]); err != nil {
		return e, err
	}
	return e, w.Free(ctx)
}

// maximum returns the largest v that any rank gives: each raises the element at
// rank 0 if its own is larger. Kind: collective.
func maximum(ctx context.Context, w *window.Window[uint64], index int, v uint64) (uint64, error) {
	old, err := window.AtomicLoad(ctx, w, 0, index)
	for err == nil && old < v {
		was := old
		if old, err = window.CompareSwap(ctx, w, 0, index, was, v); old == was {
			break
		}
	}
	if err != nil {
		return 0, err
	}
	if err := w.Fence(ctx); err != nil {
		return 0, err
	}
	return window.AtomicLoad(ctx, w, 0, index)
}
