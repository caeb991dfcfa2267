package fan

import (
	"fmt"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// hasNews reports whether a read has something to do.
func (f *fanIn) hasNews() bool {
	if f.closed.Load() || f.team.Health() != f.health {
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
	word := f.summary.Word(g.first / pipe.GroupSize)
	if int64(word-g.word) < 0 {
		g.inexact = true // counts grow
	}
	g.word = word
	if g.wordDecides() {
		return word != g.taken
	}
	if g.inexact && g.blocked == 0 && word != g.probed {
		return true
	}
	for i := g.first; i < g.first+g.n; i++ {
		if p := &f.pipes[i]; !p.ended && (p.failed != nil || p.HasArrived()) {
			return true
		}
	}
	return false
}

// wordDecides reports whether the word alone shows whether a read must look at the pipes.
func (g *group) wordDecides() bool {
	// More was taken than counted: counts are on their way behind their blocks, or a
	// pipe's flags are false. Blocks of the remaining pipes must not wait for the word.
	ahead := int64(g.word-g.taken) < 0
	// Blocks behind one that is not handed out are counted, and cannot be taken.
	return !g.inexact && !ahead && g.blocked == 0
}

// watched appends the words that hasNews looks at: those of the summary, and the flags of
// pipes of a group whose word does not decide.
func (f *fanIn) watched(list []int) []int {
	list = f.summary.Watch(list)
	for i := range f.groups {
		g := &f.groups[i]
		if g.wordDecides() {
			continue
		}
		for k := g.first; k < g.first+g.n; k++ {
			if p := &f.pipes[k]; !p.ended {
				list = p.WatchArrivals(list)
			}
		}
	}
	return list
}

// checkHealth notes the pipes whose writers' ranks are gone.
func (f *fanIn) checkHealth() {
	now := f.team.Health()
	if now == f.health {
		return
	}
	f.health = now
	fates := map[int]error{}
	for i := range f.pipes {
		p := &f.pipes[i]
		fate, known := fates[p.Peer]
		if !known {
			fate = p.Fate()
			fates[p.Peer] = fate
		}
		if fate != nil && !p.ended {
			f.fail(i, fate)
		}
	}
}

// missing returns a clause that says why a read waits.
func (f *fanIn) missing() string {
	blocked := 0
	for i := range f.pipes {
		if p := &f.pipes[i]; p.blocked && !p.Books.HasRoom() {
			blocked++
		}
	}
	if blocked == 0 {
		return fmt.Sprintf("none of %d pipes had a block", f.open.Load())
	}
	return fmt.Sprintf("of %d pipes, %d had a block and no memory for it, which a Free gives, and the others had none", f.open.Load(), blocked)
}
