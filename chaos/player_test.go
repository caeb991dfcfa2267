package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// Elements of a window, of each origin: cells, then words. Behind those of all origins:
// one counter of all, and one value below the lock.
const (
	cells = 5
	words = 3
)

// A player is a rank that makes random steps and knows their results.
type player struct {
	*testjob.Rank
	trial
	own, shared *rand.Rand
	victims     map[int]bool          // ranks that die in this trial
	told        *window.Window[int64] // at a victim, how many ranks may see it die

	team    *runtime.Team // of the ranks that compare their memory with the model
	w       *window.Window[int64]
	cells   [][]*cell // by target
	words   [][]word
	signals []eventCount // by target: this rank's signals
	counted []eventCount // by target: this rank's additions to the counter
	guarded []eventCount // by target: this rank's additions below the lock
	buffers []abandoned
	next    int64 // a value that no cell held before
}

// An abandoned buffer was the destination of a canceled get.
type abandoned struct {
	step string
	mem  []int64
}

// stain fills abandoned buffers: no cell ever holds it.
const stain = -7

func newPlayer(r *testjob.Rank, t trial) *player {
	p := &player{Rank: r, team: r.World, trial: t, own: t.rng(r.Me), shared: t.rng(-1), next: int64(r.Me+1) << 32}
	p.signals, p.counted, p.guarded = make([]eventCount, r.N), make([]eventCount, r.N), make([]eventCount, r.N)
	for range r.N {
		p.cells = append(p.cells, nil)
		p.words = append(p.words, nil)
		target := len(p.cells) - 1
		for range cells {
			p.cells[target] = append(p.cells[target], newCell())
		}
		for range words {
			p.words[target] = append(p.words[target], word{0})
		}
	}
	return p
}

// allocate makes the window of the trial.
func (p *player) allocate(ctx context.Context, team *runtime.Team) {
	w, err := window.Allocate[int64](ctx, team, p.elements(), window.WithName("chaos"), window.WithSlots(p.N))
	p.NoError(err)
	p.w = w
}

func (p *player) elements() int                { return p.N*p.block() + 2 }
func (p *player) block() int                   { return cells*p.width + words }
func (p *player) cellAt(cell int) int          { return p.Me*p.block() + cell*p.width }
func (p *player) wordAt(word int) int          { return p.Me*p.block() + cells*p.width + word }
func (p *player) counterAt() int               { return p.N * p.block() }
func (p *player) guardedAt() int               { return p.N*p.block() + 1 }
func (p *player) target() int                  { return p.own.IntN(p.N) }
func (p *player) value() int64                 { p.next++; return p.next }
func (p *player) isVictimDeath(err error) bool { return isDeathOf(err, p.victims) }

// judge returns the effect of a step that ended with err. It fails the trial unless the
// fuse, or the death of a victim, explains err.
func (p *player) judge(step string, f fuse, err error) effect {
	switch {
	case err == nil:
		return sure
	case f.excuses(err), p.isVictimDeath(err):
		return maybe
	}
	p.NoError(err, "%v: rank %d: %s, %s", p.trial, p.Me, step, f.name)
	return maybe
}

// isDeathOf reports whether err is the death of one of victims.
func isDeathOf(err error, victims map[int]bool) bool {
	var rank *runtime.RankError
	return errors.As(err, &rank) && errors.Is(rank, runtime.ErrRankDead) && victims[rank.Rank]
}

// certain is the context of a step that must succeed.
func (p *player) certain(ctx context.Context) fuse { return fuse{ctx, ctx, "no fuse", func() {}} }

// swap hands every member's value to all members of the team.
func swap[T any](ctx context.Context, p *player, mine T) []T {
	text, err := json.Marshal(mine)
	p.NoError(err)
	texts, err := p.team.Exchange(ctx, text)
	p.NoError(err, "%v: rank %d: Exchange", p.trial, p.Me)
	all := make([]T, len(texts))
	for i := range texts {
		p.NoError(json.Unmarshal(texts[i], &all[i]))
	}
	return all
}

func (p *player) at(what string, target int) string {
	return fmt.Sprintf("%v: rank %d: %s at rank %d", p.trial, p.Me, what, target)
}
