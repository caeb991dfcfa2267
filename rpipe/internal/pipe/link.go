package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Link connects a pipe's end to its peer: each end has some memory that the peer
// reaches. That memory has two parts, data and flags:
//
//	data   bytes, which mean nothing until a flag says so
//	flags  words of 64 bits, stored whole by the peer, each behind its data
//
// Everything that is put arrives in the order of the calls. Any fabric with a
// put that notifies, a get and a flush can carry a link.
//
// Of the calls that wait, those of one end's program come one at a time; puts
// may come from several goroutines, which the caller keeps in order.
type Link interface {
	home
	finder
	far
	teller
	life
}

// home is this end's memory.
type home interface {
	// Appear lets the peer find this one. Until then the end may release it at any
	// time.
	Appear(ctx context.Context) error
	// Local returns the data. It stays where it is until release.
	Local() []byte
	// Flag loads a flag. It sees all that was put ahead of it.
	Flag(i int) uint64
	// Disowned reports whether the peer has disowned this one.
	Disowned() bool
	// Stage returns n more bytes, made by the first call, which PutStaged sends
	// as they are and which get fills as they are.
	Stage(n int) ([]byte, error)
	// AlsoAwait is await for one more goroutine beside that which awaits.
	AlsoAwait(ctx context.Context, flags []int, ready func() bool) error
}

// An inMemory link's flags lie side by side, for those that load and store them often.
type inMemory interface {
	// words returns this end's. After release they can be loaded all the same, and
	// mean nothing.
	words() []atomic.Uint64
	// near returns how the peer is reached where it is mapped.
	near() near
}

// near is a mapped end.
type near struct {
	team  *team.Team      // its health moves when the end's rank dies; nil: the end is not mapped
	flags []atomic.Uint64 // the end's where a plain store puts one, else nil
	bell  wait.Ringer     // wakes the end's rank after a store
}

// finder finds the peer.
type finder interface {
	// Connect finds the peer and has check look at the card at the start of
	// its data. With wait it waits until the peer is open; otherwise it is
	// false while that is not.
	Connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error)
	// Disown tells the peer, whose card check has refused, that nothing is put
	// there. It is false if that did not get through.
	Disown(ctx context.Context) bool
	// Queue returns the connection to the rank of the peer, once connect is true.
	Queue() *fabric.Peer
}

// far is the peer's memory.
type far interface {
	// Remote returns the peer's data where it can be loaded and stored
	// directly, else nil.
	Remote() []byte
	// PutFlag stores src (which may be empty) at data offset to, then value in a
	// flag. It returns at local completion: src may be used again.
	PutFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error
	// PutLast stores the end's last flag, behind all additions to a summary.
	PutLast(ctx context.Context, flag int, value uint64) error
	// PutStaged is PutFlag of n bytes from the stage's offset from, which stay as
	// they are until the peer says that it has them. twice puts data and
	// flag one after the other instead of together.
	PutStaged(ctx context.Context, to, from, n, flag int, value uint64, twice bool) error
	// Put stores src at data offset to, at local completion. Of puts, and of a get
	// behind them, each sees what the one before has put.
	Put(ctx context.Context, to int, src []byte) error
	// Get fetches len(dst) bytes of the peer's data. Aligned words are
	// fetched whole.
	Get(ctx context.Context, from int, dst []byte) error
}

// teller adds to a word of a summary at the peer's rank, by which a reader of
// many pipes sees where something has come.
type teller interface {
	// OpenCounter finds the word.
	OpenCounter(ctx context.Context, number uint32, group int) error
	// Tell adds 1 to it, behind all that was put before, and does nothing without
	// one. It waits for nothing: without room in the queue the addition leaves later.
	Tell() error
	// Owe counts an addition that a later AddSum or tell posts.
	Owe()
	// AddSum posts all additions that are not posted, in one. ErrNoRoom: they are left.
	AddSum(ctx context.Context) error
}

// A wordGetter is a far end that an aligned word can be fetched from by an atomic.
type wordGetter interface {
	// wordReads returns up to how many bytes that is the thing to do; want counts
	// unless it is negative.
	wordReads(want int) int
	// getWord is Get of at most WordSize bytes from a word. No rank changes the word
	// meanwhile.
	getWord(ctx context.Context, from int, dst []byte) error
}

const WordSize = 8

// life is how ends learn of each other's fate.
type life interface {
	// Await returns nil once ready is true, or else the peer's fate, or the cause of
	// ctx's end. It calls ready often; ready looks at these flags, and at state whose
	// changes ring announces.
	Await(ctx context.Context, flags []int, ready func() bool) error
	// Fate returns an error that says how the peer ended, nil while it is well.
	Fate() error
	// Progress takes in arrived puts. It is false where none needs that.
	Progress() bool
	// Ring has a goroutine of this rank that waits look again.
	Ring()
	// Flush returns when all that was put is there to be seen.
	Flush(ctx context.Context) error
	// Release withdraws this end's memory and gives it back. The other end has
	// said that it puts nothing more here.
	Release() error
}
