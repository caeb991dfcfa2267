package board

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Config is what a Board is made of.
type Config struct {
	Rank, Size int
	Mem        [][]byte      // every member's board, Size bytes each
	Bells      []wait.Ringer // every member's bell; this member's own is not used
	// Await returns nil once ready is true, or earlier why nobody should wait
	// any more. Whoever makes ready true rings this member's bell.
	Await func(ctx context.Context, ready func() bool) error
	// View returns n bytes of a member's memory, in place, or nil where there
	// are no such bytes; also of this member's own. It is nil at all members or
	// at none.
	View func(member int, region, offset uint64, n int) []byte
	// Dead tells that a member does nothing any more. It is nil where members cannot die.
	Dead func(member int) bool
	// Crowded: members share cores, so that who waits makes way at once.
	Crowded bool
}

// A tuning is where one way of doing things gives way to another. It is the
// same at all members.
type tuning struct {
	pocket   int // up to here data lies in a pocket
	bay      int // bytes of a bay
	last     int // up to here the last of more than two members to come combines alone
	alone    int // up to here the root of a reduction of more than two combines alone
	place    int // from here it is worthwhile to ask where buffers lie
	pipe     int // the shortest chunk of a pipeline
	pipeMost int // the longest
	block    int // the piece that is combined in a core's own cache
}

func measured(members int) tuning {
	return tuning{pocket: pocketSize, bay: baySize(members), last: 16 << 10, alone: 32 << 10, place: 8 << 10, pipe: 16 << 10, pipeMost: 64 << 10, block: 8 << 10}
}

// A Board makes collective calls at one member of a team. It is used by one
// goroutine at a time.
type Board struct {
	tuning
	rank, n int
	lane    int // of a bay, for each of the others
	crowded bool
	bells   []wait.Ringer // of the others
	bell    []wait.Ringer // by member
	peers   []peer
	await   func(ctx context.Context, ready func() bool) error
	view    func(member int, region, offset uint64, n int) []byte
	dead    func(member int) bool
	arrived *word
	release *line

	seq, chain uint64      // of this call
	turn       uint64      // the latest that was begun
	left       uint64      // the latest that this member has left
	known      uint64      // all others have left it
	told       uint64      // all others know that this member has left it
	bayed      uint64      // the latest in which bays were used
	cached     bool        // what all members write in this call stays in caches
	held       [bays]hold  // when a bay of this member's is free
	pocketed   [lines]hold // when a pocket is

	word  *atomic.Uint64 // what this member waits for to be want
	want  uint64
	ready func() bool // the same, as Await wants it

	in      [][]byte // operands by member
	views   [][]byte // outputs by member
	scratch []byte
	failure error
}

// New returns a member's board.
func New(c Config) (*Board, error) { return newWith(c, measured(c.Size)) }

func newWith(c Config, t tuning) (*Board, error) {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size || len(c.Mem) != c.Size || len(c.Bells) != c.Size || c.Await == nil {
		return nil, fmt.Errorf("board: member %d of %d with %d boards and %d bells", c.Rank, c.Size, len(c.Mem), len(c.Bells))
	}
	b := &Board{tuning: t, rank: c.Rank, n: c.Size, lane: t.bay / max(c.Size-1, 1), crowded: c.Crowded, await: c.Await, view: c.View, dead: deadBy(c.Dead), bell: c.Bells,
		in: make([][]byte, c.Size), views: make([][]byte, c.Size), scratch: make([]byte, t.block)}
	b.ready = func() bool { return b.word.Load() >= b.want }
	if c.Size == 1 {
		return b, nil
	}
	if listSize(c.Size) > t.bay {
		return nil, fmt.Errorf("board: %d members are more than a bay has room for; use messages", c.Size)
	}
	for m, mem := range c.Mem {
		if size := sizeWith(c.Size, t.bay); len(mem) < size || !aligned(mem) {
			return nil, fmt.Errorf("board: member %d's has %d bytes, %d at a multiple of %d are needed", m, len(mem), size, lineSize)
		}
		b.peers = append(b.peers, newPeer(mem, t.bay))
		if m != c.Rank {
			b.bells = append(b.bells, c.Bells[m])
		}
	}
	b.arrived, b.release = wordAt(c.Mem[0], arrivedOffset), lineAt(c.Mem[0], releaseOffset)
	return b, nil
}

// deadBy returns f, or what tells of no deaths.
func deadBy(f func(member int) bool) func(member int) bool {
	if f == nil {
		return func(int) bool { return false }
	}
	return f
}

// Fits tells whether elements of a size can be used here: one for each member
// must fit in a bay.
func (b *Board) Fits(elem int) bool { return elem <= b.bay/b.n }

// begin opens a call.
func (b *Board) begin(seq, chain uint64, a *Args) error {
	b.seq, b.chain, b.cached = seq, chain, bulk.Cached(b.n, len(a.Recv))
	return b.failure
}

// end closes it. After an error there is no other call.
func (b *Board) end(err error) error {
	if err != nil {
		b.Abandon(err)
	}
	return err
}
