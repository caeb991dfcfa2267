package board

import (
	"fmt"
	"sync/atomic"
)

// A queue leads from one member to another, in memory of the first, who writes
// all of it but two words. One end puts in, the other takes out, and nobody else
// looks at it:
//
//	taken   how many lines the other has taken, which it writes
//	using   the latest line by which it was lent what it uses, which it writes
//	gone    the first one's call has failed
//	lines   | number | seq | chain | length | 32 B |   32 of them
//	bays    | 4 of 4 KiB or more                   |
//
// A block is a line, or a line for each chunk of it: line k uses bay k mod 4 for
// what it has no room for. All its lines have the length of the whole block, so
// that the other finds out at once when it expects another one.
type queue struct {
	taken *word
	using *atomic.Uint64
	gone  *atomic.Uint64
	lines *[lines]line
	bays  [bays][]byte
}

const (
	// short is how many bytes fit in a line behind the length.
	short = inline - 8

	takenOffset      = 0 * lineSize
	goneLineOffset   = 1 * lineSize
	usingLineOffset  = 2 * lineSize
	queueLinesOffset = 4 * lineSize
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

// edgeTuning is the tuning of queues. To wait until a block was read costs members
// that share cores one more turn at them.
func edgeTuning(members int, crowded bool) tuning {
	t := measured(members)
	t.bay = queueBay(members)
	t.pipeMost = t.bay
	if crowded {
		t.place = 32 << 10
	}
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
	q := queue{taken: wordAt(mem, takenOffset), using: &wordAt(mem, usingLineOffset).Uint64, gone: &wordAt(mem, goneLineOffset).Uint64,
		lines: linesAt(mem, queueLinesOffset)}
	for i := range q.bays {
		from := queueBaysOffset + i*bay
		q.bays[i] = mem[from : from+bay : from+bay]
	}
	return q, nil
}
