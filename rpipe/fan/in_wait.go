package fan

import "fmt"

// scan loads the next words, and makes the pipes due whose words have changed. Over a window it
// looks at the pipes. It reports whether it made one due.
func (f *fanIn) scan(words int) (found bool) {
	for range min(words, len(f.pipes)) {
		i := f.scanned
		if f.scanned++; f.scanned == len(f.pipes) {
			f.scanned = 0
		}
		if f.called(i) && f.enqueue(i) {
			found = true
		}
	}
	return found
}

// called reports whether the word of pipe i has changed, or over a window whether the pipe must be
// looked at. The load pairs with the writer's store of the word, behind that of a flag.
func (f *fanIn) called(i int) bool {
	if f.summary.Words == nil {
		return f.pipes[i].Called()
	}
	word := f.summary.Words[i].Load()
	if word == f.seen[i] {
		return false
	}
	f.seen[i] = word
	return true
}

// enqueue makes a pipe due, in the next turn if it has had this one. It is false if the pipe is
// due already or has ended.
func (f *fanIn) enqueue(i int) bool {
	p := &f.pipes[i]
	if p.due || p.ended {
		return false
	}
	p.due = true
	if p.turn == f.turn {
		f.next = append(f.next, int32(i))
	} else {
		f.now = append(f.now, int32(i))
	}
	return true
}

// hasNews reports whether a read has something to do.
func (f *fanIn) hasNews() bool {
	if f.closed.Load() || f.team.Health() != f.health || f.pipes[0].Layer.Err() != nil || f.scan(len(f.pipes)) {
		return true
	}
	for _, due := range [...][]int32{f.now[f.at:], f.next} {
		for _, i := range due {
			if f.pipes[i].hasNews() {
				return true
			}
		}
	}
	return false
}

// checkHealth notes the pipes whose writers' ranks are gone, or have returned without closing them.
// It has probe look once more for writers whose ranks have returned.
func (f *fanIn) checkHealth() {
	now := f.team.Health()
	if now == f.health {
		return
	}
	f.health = now
	for i := range f.pipes {
		switch p := &f.pipes[i]; {
		case p.Presence() != nil:
			p.gone = true
			f.enqueue(i)
		case p.Unsought():
			f.probed = min(f.probed, i)
		}
	}
}

// missing returns a clause that says why a read waits.
func (f *fanIn) missing() string {
	blocked := 0
	for i := range f.pipes {
		if f.pipes[i].AwaitsRoom() {
			blocked++
		}
	}
	if blocked == 0 {
		return fmt.Sprintf("none of %d pipes had a block", f.open.Load())
	}
	return fmt.Sprintf("of %d pipes, %d had a block and no memory for it, which a Free gives, and the others had none", f.open.Load(), blocked)
}
