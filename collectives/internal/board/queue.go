package board

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
)

// A queue leads from one member to another, in memory of the first, who writes
// all of it but one word. One end puts in, the other takes out, and nobody else
// looks at it:
//
//	taken   how many lines the other has taken, which it writes
//	lines   | number | seq | signature | length | 32 B |   32 of them
//	bays    | 4 of 4 KiB or more                       |
//
// A block is a line, or a line for each chunk of it: line k uses bay k mod 4 for
// what it has no room for. All its lines have the length of the whole block, so
// that the other finds out at once when it expects another one.
type queue struct {
	taken *word
	lines *[lines]line
	bays  [bays][]byte
}

const (
	// short is how many bytes fit in a line behind the length.
	short = inline - 8

	takenOffset      = 0 * lineSize
	queueLinesOffset = 2 * lineSize
	// queueBaysOffset begins a page.
	queueBaysOffset = 4096
)

// queueBay returns the bytes of a bay. Few members have large ones, which cost fewer
// waits, as long as what passes through those of all of them stays in caches. A member
// that has a queue to each of very many gives some 20 MiB to all.
func queueBay(members int) int {
	const page = 4 << 10
	return max(min(512<<10/members, 256<<10), min(4<<20/members, 16<<10), page) &^ (page - 1)
}

// edgeTuning is the tuning of queues.
func edgeTuning(members int) tuning {
	t := measured(members)
	t.bay = queueBay(members)
	t.pipeMost = t.bay
	return t
}

// QueueSize is how many bytes of memory a member of a team gives to each queue
// that leads from it. They begin at a multiple of 64 and are zero at first.
func QueueSize(members int) int { return queueSizeWith(queueBay(members)) }

func queueSizeWith(bay int) int { return queueBaysOffset + bays*bay }

func newQueue(mem []byte, bay int) (queue, error) {
	if size := queueSizeWith(bay); len(mem) < size || !aligned(mem) {
		return queue{}, fmt.Errorf("board: a queue has %d bytes, %d at a multiple of %d are needed", len(mem), size, lineSize)
	}
	q := queue{taken: wordAt(mem, takenOffset), lines: linesAt(mem, queueLinesOffset)}
	for i := range q.bays {
		from := queueBaysOffset + i*bay
		q.bays[i] = mem[from : from+bay : from+bay]
	}
	return q, nil
}

// A sender is the end of a queue at the member that it leads from.
type sender struct {
	queue
	member int         // at the other end
	bell   wait.Ringer // its bell
	posted uint64      // lines, so far
	known  uint64      // of them that the other has taken
	held   [bays]uint64
}

// took tells whether the other has taken line k.
func (s *sender) took(k uint64) (bool, error) {
	if k <= s.known {
		return true, nil
	}
	taken := s.taken.Load() // pairs with the store in tell
	if taken < s.known || taken > s.posted {
		return false, ErrCorrupt
	}
	s.known = taken
	return k <= taken, nil
}

// free tells whether the next line may be written, with its bay if that is used.
func (s *sender) free(bay bool) (bool, error) {
	k := s.posted + 1
	last := k - min(k, lines)
	if bay {
		last = max(last, s.held[k%bays])
	}
	return s.took(last)
}

// line returns the next line, which is free, and its number.
func (s *sender) line() (*line, uint64) {
	k := s.posted + 1
	return &s.lines[k%lines], k
}

// post shows the next line to the other member.
func (s *sender) post(l *line, seq, signature uint64, length int) {
	binary.NativeEndian.PutUint64(l.data[:], uint64(length))
	l.seq, l.signature = seq, signature
	s.posted++
	l.turn.Store(s.posted) // pairs with the load in take
	s.bell.Ring()
}

// A receiver is the end of a queue at the member that it leads to.
type receiver struct {
	queue
	member int
	bell   wait.Ringer
	got    uint64 // lines, so far
	told   uint64 // of them that the other may know of
}

// next returns the next line, nil while it is not there.
func (r *receiver) next() (*line, error) {
	k := r.got + 1
	l := &r.lines[k%lines]
	switch now := l.turn.Load(); { // pairs with the store in post
	case now == k:
		return l, nil
	case now > k:
		return nil, ErrCorrupt
	}
	return nil, nil
}

// took notes that the next line was taken. The other is told at once if it may wait
// for more than lines, and else often enough for it never to wait for a line that
// was taken.
func (r *receiver) took(tell bool) {
	r.got++
	if tell || r.got-r.told >= lines/2 {
		r.told = r.got
		r.taken.Store(r.got) // pairs with the load in the sender's took
		r.bell.Ring()
	}
}
