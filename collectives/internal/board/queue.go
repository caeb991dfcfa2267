package board

import (
	"fmt"
	"sync/atomic"
)

// A queue leads from a sender to a receiver, in memory of the sender, which
// writes all of it but two words. No further member reads or writes it. It shares no code
// with internal/channel, whose slots lie at the receiver: ADR 20 has the reasons.
//
//	taken   lines that the receiver has taken; the receiver writes it
//	using   the latest line whose leased memory the receiver uses; the receiver writes it
//	gone    the sender's call has failed
//	lines   | number | seq | chain | length | 32 B |   32 of them
//	large   | 4 buffers of 4 KiB or more           |
//
// A block is a line, or a line for each chunk of it: line k uses large buffer k
// mod 4 for data that does not fit. All its lines have the length of the whole
// block, so that a receiver that expects another length finds out at once.
type queue struct {
	taken *word
	using *atomic.Uint64
	gone  *atomic.Uint64
	lines *[queueLines]line
	large [largeBuffers][]byte
}

const (
	// short is the number of bytes in a line behind the length.
	short = inline - 8
	// queueLines is a power of two.
	queueLines = 32

	takenOffset      = 0 * lineSize
	goneLineOffset   = 1 * lineSize
	usingLineOffset  = 2 * lineSize
	queueLinesOffset = 4 * lineSize
	// queueLargeOffset begins a page.
	queueLargeOffset = 4096
)

// queueLargeSize returns the size of a large buffer of a queue. Queues of few members
// have large ones, which cost fewer waits, as long as caches hold the data of all of
// them. A member with queues to very many members gives some 20 MiB to all of them.
func queueLargeSize(members int) int {
	const page = 4 << 10
	return max(min(512<<10/members, 256<<10), min(4<<20/members, 16<<10), page) &^ (page - 1)
}

// edgeTuning returns the tuning of queues. Waiting until a block was read costs
// members that share cores one more turn at them.
func edgeTuning(members int, crowded bool) tuning {
	t := measured(members, crowded)
	t.large = queueLargeSize(members)
	t.pipeMost = t.large
	if crowded {
		t.place = 32 << 10
	}
	return t
}

// QueueSize returns the number of bytes that a member of a team gives to each
// queue that leads from it. They begin at a multiple of 64 and are zero at first.
func QueueSize(members int) int { return queueSizeWith(queueLargeSize(members)) }

func queueSizeWith(large int) int { return queueLargeOffset + largeBuffers*large }

// newQueue returns the queue in mem. Both ends call it, each with its own mapping.
func newQueue(mem []byte, large int) (queue, error) {
	if size := queueSizeWith(large); len(mem) < size || !aligned(mem) {
		return queue{}, fmt.Errorf("board: a queue has %d bytes, %d at a multiple of %d are needed", len(mem), size, lineSize)
	}
	q := queue{taken: wordAt(mem, takenOffset), using: &wordAt(mem, usingLineOffset).Uint64, gone: &wordAt(mem, goneLineOffset).Uint64,
		lines: queueLinesAt(mem, queueLinesOffset)}
	for i := range q.large {
		from := queueLargeOffset + i*large
		q.large[i] = mem[from : from+large : from+large]
	}
	return q, nil
}
