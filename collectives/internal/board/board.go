package board

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Config describes a team and its memory to a Board.
type Config struct {
	Rank, Size int
	// Mem is this member's board: HeadSize bytes, and its buffers behind them unless Buffers gives them.
	// It is there before any member makes a call, and zero at first.
	Mem []byte
	// Find returns the boards of other members and their bells: it calls found for each. An error ends
	// the call.
	Find func(ctx context.Context, members []int, found Found) error
	// Await returns nil once ready is true, or earlier an error that ends the
	// call. The member that makes ready true stores a word by atomics.StoreRelease and rings
	// this member's bell. The ring may overtake the store: Await looks again after pauses.
	Await func(ctx context.Context, ready func() bool) error
	// View returns n bytes of a member's memory, in place, or nil if the member
	// has no such bytes. It serves this member's own memory, too. It is nil at
	// all members or at none.
	View func(member int, region, offset uint64, n int) []byte
	// Buffers returns this member's buffers, BuffersSize bytes of which the first n are present. It
	// is nil if they lie behind the heads of all members.
	Buffers func(n int) ([]byte, error)
	// FindBuffers returns the buffers of another member, which has posted data there.
	FindBuffers func(member int) ([]byte, error)
	// Dead reports whether a member is dead. It is nil if members cannot die.
	Dead func(member int) bool
	// Crowded: members share cores, so a waiter gives way at once.
	Crowded bool
}

// Found takes the board and the bell of a member.
type Found func(member int, mem []byte, bell wait.Ringer) error

// A tuning holds the sizes at which a call changes its way. It is the same at all
// members.
type tuning struct {
	small     int // up to here data lies in a small buffer
	large     int // bytes of a large buffer
	last      int // up to here the last of more than two members to come combines alone
	alone     int // up to here the root of a reduction of more than two combines alone
	place     int // from here it pays to exchange the places of buffers
	pipe      int // the shortest chunk of a pipeline
	pipeMost  int // the longest chunk
	lastOpens int // up to so many members the last one to come opens a gate
	block     int // the piece that a core combines in its own cache
	direct    int // from here the members of a rooted call use the buffers in place
	results   int // from here the members of an all-reduce do
	halves    int // from here each of two members calls an operator of single elements for half of them
	single    int // a byte counts so many times for last and alone, with an operator of single elements
}

// sharedMost is the largest number of members that share reductions early. No more were measured.
const sharedMost = 16

// measured returns the lengths at which ways change, as measured for so many members. With a core to each of
// more than two, shares beat the work of one member early (docs/benchmarks-16-cores.md).
func measured(members int, crowded bool) tuning {
	t := tuning{small: smallSize, large: largeSize(members), last: 16 << 10, alone: 32 << 10, place: 8 << 10, pipe: 16 << 10, pipeMost: 64 << 10,
		lastOpens: 9, block: 8 << 10, halves: 64 << 10, single: 1}
	// Where buffers are not in the caches, another core takes longer to read them than their
	// own core to copy them. Up to these lengths that costs more than the copy (benchmarks
	// coll_broadcast and others, -buffers 64).
	t.direct, t.results = 64<<10, 256<<10
	switch {
	case members == 2:
		t.direct, t.results = 1<<20, 512<<10
	case !crowded && members > 2 && members <= sharedMost:
		t.last, t.alone, t.single = 2<<10, min(t.alone, 768<<10/(members*members)), 4
	}
	return t
}

// A Board makes collective calls at one member of a team. It is used by one
// goroutine at a time.
type Board struct {
	tuning
	rank, n int
	portion int // of a large buffer, for each other member
	crowded bool
	peers   []peer        // by member
	bells   []wait.Ringer // of the other members whose boards this one has found
	find    func(ctx context.Context, members []int, found Found) error
	await   func(ctx context.Context, ready func() bool) error
	view    func(member int, region, offset uint64, n int) []byte
	dead    func(member int) bool
	gates   uint64 // arrivals at all gates to which this member has come, if member 0 opens

	seq, chain uint64 // of this call
	turn       uint64 // the latest that this member has begun
	left       uint64 // the latest that this member has left
	known      uint64 // the latest that all other members have left
	pacerKnows uint64 // the latest that all members have left, by word of pacers
	told       uint64 // the latest of which all other members know that this one has left it
	buffers    func(n int) ([]byte, error)
	others     func(member int) ([]byte, error) // their buffers
	present    int                              // bytes of this member's buffers that are there
	largeUsed  uint64                           // the latest in which buffers were used
	width      int                              // the most units that data has taken, of turns after told
	cached     bool                             // caches hold all that members write in this call
	rootPosts  bool                             // the root alone posts data in this call
	unit       uint64                           // the next of this member's units, by a count that never falls
	latest     uint64                           // the unit where the latest data begins
	held       holds                            // of its units
	smallHeld  holds                            // of its small buffers
	lineHeld   holds                            // of its lines

	word      *atomic.Uint64 // word that this member waits for, until it is want
	want      uint64
	ready     func() bool // reports that, for Await
	from      int         // member that writes the word, if it is a left word
	readyLeft func() bool // ready for a left word: it requests a ring of the member

	in      [][]byte // operands by member, once all boards are found
	views   [][]byte // outputs by member, once they are in place
	scratch []byte
	failure error
}

// New returns a member's board.
func New(c Config) (*Board, error) { return newWith(c, measured(c.Size, c.Crowded)) }

// newWith makes the board of one member. Await of the Config does all waiting, so that the caller sees
// deaths and contexts.
func newWith(c Config, t tuning) (*Board, error) {
	if c.Size < 1 || c.Size > MaxMembers || c.Rank < 0 || c.Rank >= c.Size || c.Find == nil || c.Await == nil {
		return nil, fmt.Errorf("board: member %d of %d", c.Rank, c.Size)
	}
	b := &Board{tuning: t, width: 1, rank: c.Rank, n: c.Size, portion: t.large / max(c.Size-1, 1), crowded: c.Crowded, await: c.Await, view: c.View, dead: deadBy(c.Dead), find: c.Find, buffers: c.Buffers, others: c.FindBuffers}
	b.ready = func() bool { return b.word.Load() >= b.want }
	b.readyLeft = b.lookLeft
	if c.Size == 1 {
		return b, nil
	}
	if listSize(c.Size) > t.large {
		return nil, fmt.Errorf("board: %d members are more than a large buffer has room for; use messages", c.Size)
	}
	b.peers = make([]peer, c.Size)
	return b, b.add(c.Rank, c.Mem, nil)
}

// deadBy returns f, or a function that reports no deaths.
func deadBy(f func(member int) bool) func(member int) bool {
	if f == nil {
		return func(int) bool { return false }
	}
	return f
}

// Fits reports whether a board can combine elements of a size: one for each
// member must fit in a large buffer.
func (b *Board) Fits(elem int) bool { return elem <= b.large/b.n }

// begin opens a call.
func (b *Board) begin(seq, chain uint64, a *Args) error {
	b.seq, b.chain, b.cached, b.rootPosts = seq, chain, bulk.Cached(b.n, len(a.Recv)), false
	return b.failure
}

// end closes the call. After an error the board makes no further call.
func (b *Board) end(err error) error {
	if err != nil {
		b.Abandon(err)
	}
	return err
}
