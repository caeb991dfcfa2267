package board

import "sync/atomic"

// What a board consists of. Lines that different members write never share a
// cache line, nor do those that are polled in turn.
const (
	lineSize = 64
	// inline is how many bytes of data fit in a line behind its head.
	inline = 40
	// lines and bays are powers of two. A member is at most that many turns
	// ahead of the others.
	lines = 32
	bays  = 4
	// A pocket goes with each line, for data that is longer and yet too short to have
	// members wait for a bay.
	pocketSize = 1 << 10

	leftOffset    = 0 * lineSize
	goneOffset    = leftOffset + 8
	arrivedOffset = 2 * lineSize // on member 0's board only, as the next
	releaseOffset = 4 * lineSize
	usingOffset   = 6 * lineSize
	linesOffset   = 8 * lineSize
	// These begin pages.
	pocketsOffset = 4096
	baysOffset    = pocketsOffset + lines*pocketSize
)

// baySize returns the longest chunk. Four of 64 KiB keep a copy going at full
// speed and stay in a core's own cache; with more members, whose chunks lie side
// by side in a bay and who may share cores, waiting costs more than cache.
func baySize(members int) int { return min(max(members*32<<10, 64<<10), 256<<10) }

// A line is what a member says in a turn.
type line struct {
	turn  atomic.Uint64 // stored last; its reader's load is in Board.see or behind a gate
	seq   uint64        // of the call
	chain uint64        // of the call
	data  [inline]byte
}

// A word lies in a line of its own.
type word struct {
	atomic.Uint64
	_ [lineSize - 8]byte
}

// A peer is a member's board as this member maps it.
type peer struct {
	left    *word
	gone    *atomic.Uint64 // its call has failed (lent.go)
	using   *atomic.Uint64 // the latest turn in which it used what others lent
	lines   *[lines]line
	pockets []byte
	bays    [bays][]byte
}

// pocket returns the first n bytes of the pocket of turn k.
func (p *peer) pocket(k uint64, n int) []byte { return p.pockets[k%lines*pocketSize:][:n] }

// Size is how many bytes of memory each member of a team of that many gives to
// its board. They begin at a multiple of 64 and are zero at first.
func Size(members int) int { return sizeWith(members, baySize(members)) }

func sizeWith(members, bay int) int {
	if members < 2 {
		return 0
	}
	return baysOffset + bays*bay
}

func newPeer(mem []byte, bay int) peer {
	p := peer{left: wordAt(mem, leftOffset), gone: &wordAt(mem, goneOffset).Uint64, using: &wordAt(mem, usingOffset).Uint64,
		lines: linesAt(mem, linesOffset), pockets: mem[pocketsOffset:baysOffset:baysOffset]}
	for i := range p.bays {
		from := baysOffset + i*bay
		p.bays[i] = mem[from : from+bay : from+bay]
	}
	return p
}
