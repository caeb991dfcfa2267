package fan

import (
	"fmt"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// hasNews reports whether a read has something to do.
func (f *fanIn) hasNews() bool {
	if f.closed.Load() || f.team.Health() != f.health || f.pipes[0].Layer.Err() != nil {
		return true
	}
	for i := range f.groups {
		if f.groupHasNews(&f.groups[i]) {
			return true
		}
	}
	return false
}

// groupHasNews reports whether a read must look at the pipes of a group.
func (f *fanIn) groupHasNews(g *group) bool {
	f.loadWord(g)
	switch {
	case g.wordDecides():
		return g.word != g.taken
	case g.hasFields(), g.inexact && g.blocked == 0 && g.word != g.probed:
		return true
	}
	for i := g.first; i < g.first+g.n; i++ {
		if p := &f.pipes[i]; !p.ended && (p.failing() || p.HasArrived()) {
			return true
		}
	}
	g.ahead = g.word != g.taken
	return false
}

// loadWord loads the word of a group.
func (f *fanIn) loadWord(g *group) {
	word := f.summary.Word(g.first / pipe.GroupSize)
	g.inexact = g.inexact || int64(word-g.word) < 0 // counts grow
	g.word = word
	g.ahead = g.ahead || int64(word-g.taken) < 0
}

// wordDecides reports whether the word alone shows whether a read must look at the pipes.
// Blocks behind one that is not handed out are counted, and cannot be taken.
func (g *group) wordDecides() bool { return !g.inexact && !g.ahead && g.blocked == 0 }

// hasFields reports whether the fields of the word show at which pipes a read must look.
func (g *group) hasFields() bool {
	return !g.inexact && g.blocked == 0 && int64(g.word-g.taken) > 0
}

// checkHealth notes the pipes whose writers' ranks are gone, or have returned without closing them.
func (f *fanIn) checkHealth() {
	now := f.team.Health()
	if now == f.health {
		return
	}
	f.health = now
	for i := range f.pipes {
		p := &f.pipes[i]
		if gone := p.Presence(); gone != nil && !p.ended {
			f.fail(i, gone)
		}
	}
}

// missing returns a clause that says why a read waits.
func (f *fanIn) missing() string {
	blocked := 0
	for i := range f.pipes {
		if p := &f.pipes[i]; p.blocked && !p.HasRoom() {
			blocked++
		}
	}
	if blocked == 0 {
		return fmt.Sprintf("none of %d pipes had a block", f.open.Load())
	}
	return fmt.Sprintf("of %d pipes, %d had a block and no memory for it, which a Free gives, and the others had none", f.open.Load(), blocked)
}
