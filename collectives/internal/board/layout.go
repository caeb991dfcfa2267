package board

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
)

// Layout of a board. Lines that different members write never share a cache line,
// nor do those that are polled in turn.
const (
	lineSize = 64
	// inline is the number of bytes of data in a line behind its head.
	inline = 40
	// lines is a power of two. A member is at most that many turns ahead of those that read its
	// lines, and buffers with data that a line does not hold. So ranks that share cores make many
	// calls between two changes of a core's rank.
	lines   = 128
	buffers = 32
	// largeBuffers is the number of turns that a member is ahead with data as long as a
	// large buffer. A board has a unit of memory for each of buffers. A large buffer is widest
	// units that lie side by side, and shorter data takes 1, 2 or 4 units.
	largeBuffers = 4
	widest       = buffers / largeBuffers
	unitsMost    = 8 << 10
	// There are as many small buffers. They take data that is longer than a line, and too short
	// to wait for a large buffer.
	smallSize = 1 << 10

	// HeadSize is the number of bytes of a board ahead of its buffers.
	HeadSize = 12 << 10
	// largeOffset is that of the units in the buffers. It begins a page.
	largeOffset = buffers * smallSize
)

// Ahead is the largest number of calls by which a member is ahead of any other: each call takes a
// turn. In a scan it exceeds lines, since only the next member reads a line. So the ranks of one core
// make lines turns while those of another core make the lines turns before.
const Ahead = 2*lines - 16

// MaxMembers is the largest number of members of a board.
const MaxMembers = 1 << 10

// largeSize returns the size of a large buffer, the longest chunk. Four of 64 KiB keep a copy going
// at full speed and stay in a core's own cache. With more members, their chunks lie side by side in
// a large buffer. Members may share cores, and then waiting costs more than cache.
func largeSize(members int) int { return min(max(members*32<<10, 64<<10), 256<<10) }

// A line is a member's post in a turn.
type line struct {
	turn  atomic.Uint64 // stored last; its reader's load is in Board.see or behind a gate
	seq   uint64        // of the call
	chain uint64        // of the call
	data  [inline]byte
}

// A word lies in a cache line of its own.
type word struct {
	atomic.Uint64
	_ [lineSize - 8]byte
}

// A head is a member's board ahead of its buffers. All members map it.
type head struct {
	left    atomic.Uint64 // the latest turn that the member has left
	gone    atomic.Uint64 // its call has failed (lease.go)
	known   atomic.Uint64 // the latest turn that all members have left, as it knows
	_       [2*lineSize - 3*8]byte
	arrived atomic.Uint64 // on member 0's board only, as is the next
	_       [2*lineSize - 8]byte
	release line
	_       [lineSize]byte
	using   atomic.Uint64 // the latest turn in which it used memory of other members
	_       [2*lineSize - 8]byte
	lines   [lines]line
	waiters waiters // that wait for left
}

// A peer is a member's board as this member knows it, empty until it is found. It has a pointer of its own to the lines
// of the head: Go checks a pointer by a load from there, and with a load of left scans of 8 bytes take 1.05 of the time
// (coll_scan of bench).
type peer struct {
	*head
	lines *[lines]line
	*rest
}

// A rest holds the facts that each member keeps of a peer beside its head.
type rest struct {
	bell    wait.Ringer // nil for this member itself
	hasLeft uint64      // the latest turn that it has left, as this member knows
	buffers []byte      // nil until they are found
}

// small returns the first n bytes of the small buffer of turn k.
func (p *peer) small(k uint64, n int) []byte { return p.buffers[k%buffers*smallSize:][:n] }

// wide returns n bytes from a unit on, which is a multiple of their width. A peer may name
// any unit.
func (p *peer) wide(unit uint64, width, n int) []byte {
	from := int(unit%buffers) &^ (width - 1)
	units := p.buffers[largeOffset:]
	return units[from*(len(units)/buffers):][:n]
}

// BuffersSize returns the number of bytes of a member's buffers in a team of that many.
func BuffersSize(members int) int { return buffersSize(largeSize(members)) }

func buffersSize(large int) int { return largeOffset + largeBuffers*large }
