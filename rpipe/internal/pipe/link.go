package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A Layer carries pipes. OverFabric returns the fabric's. Package overwindow has another one,
// over the public calls of a window.
type Layer interface {
	// Link makes an end's memory. The peer finds it once the link appears.
	Link(ctx context.Context, e *Ends) (Link, error)
	// Stage makes n bytes from which blocks leave as they are.
	Stage(ctx context.Context, name string, n int) (Stage, error)
	// Err returns why the layer carries nothing any more, nil while it does.
	Err() error
}

// Ends describes the two ends of a link.
type Ends struct {
	Team         string // the name of the team
	Peer         int    // in the team
	Mine, Theirs Layout
	Stage        int               // bytes of a stage that this end may take
	Prepare      func(data []byte) // fills this end's data
}

// A Layout describes the memory of one end: data, and flags of 8 bytes behind it.
//
//	data   bytes, which mean nothing until a flag says so
//	flags  words of 64 bits, stored whole by the peer, each behind its data
type Layout struct {
	Name  string // by which the peer finds it
	Data  int    // bytes
	Flags int
}

// flag returns the offset of a flag.
func (l *Layout) flag(i int) int { return l.Data + 8*i }

// A Link is an end's half of a connection: its memory, and the ways to the peer's.
type Link struct {
	PeerMemory
	Directory
	Home
}

// PeerMemory writes and reads the peer's memory, and loads the flags that the peer puts here.
// A flag that arrives rings the bell of its rank. Puts may come from several goroutines, which
// the caller keeps in order. Any fabric with a put that notifies, a get and a flush can offer
// it.
type PeerMemory interface {
	// Flag loads a flag of this end, or Disowned. It sees all that was put ahead of it.
	Flag(i int) uint64
	// Put writes to the peer. Offsets are those of the peer's Layout. p has no Landing and no Head,
	// and tells by a flag if it tells. Puts arrive in the order of the calls, and a Get sees the
	// puts before it. Put returns at local completion. A Put may be Lent, or have a Region. The
	// caller must not change its bytes then until the peer says that it has them.
	Put(ctx context.Context, p fabric.Put) error
	// Get fetches len(dst) bytes of the peer's data. It fetches aligned words whole.
	Get(ctx context.Context, from int, dst []byte) error
	// NewGetting returns a Get that is not started.
	NewGetting() Getting
	// Flush returns when all that was put is there to be seen.
	Flush(ctx context.Context) error
	// Release gives this end's memory back. The peer puts nothing more here.
	Release() error
}

// A Directory is where ends find each other by name.
type Directory interface {
	// Appear lets the peer find this end. Until then the end may release its memory at
	// any time.
	Appear(ctx context.Context) error
	// Find finds the peer's memory, of which Get reads the card then. With wait it waits until the
	// peer has appeared. Otherwise it is false while the peer has not.
	Find(ctx context.Context, wait bool) (bool, error)
	// Reach returns the memory that Find has found, for puts and gets. Precondition: the card
	// says that the peer's layout is the one that this end knows.
	Reach() (*Far, error)
	// Disown sets the flag Disowned of the peer that Find has found: nothing else is put there. It
	// is false if that did not get through.
	Disown(ctx context.Context) bool
}

// Disowned is the number of a flag that lies at the same place in every end. Two ends that
// differ agree on no other one.
const Disowned = -1

// Home is this end's memory.
type Home struct {
	Data []byte // stays where it is until Release
	// Words are the flags where they lie side by side, else nil. After Release they can be
	// loaded all the same, and mean nothing.
	Words []atomic.Uint64
	Stage []byte // the stage that comes with the memory, if there is one
}

// Far is the peer's memory.
type Far struct {
	Data      []byte          // where it can be loaded and stored directly, else nil
	Words     []atomic.Uint64 // the flags where a plain store sets one, else nil
	Queue     *fabric.Peer    // the connection to the peer's rank
	MaxCopied int             // bytes of a part that a Put with path Inline copies with advantage
}

// A Getting is a get that is started and waited for, again and again.
type Getting interface {
	// Start starts a get of len(dst) bytes of the peer's data. The get owns dst until Wait; ctx
	// bounds the wait for room in the queue.
	Start(ctx context.Context, from int, dst []byte) error
	// Wait returns when dst is filled. If ctx ends first, Wait gives up the get. dst is the
	// caller's again in any case.
	Wait(ctx context.Context) error
}

// A WordGetter gets an aligned word by an atomic. No rank changes the word meanwhile.
type WordGetter interface {
	GetWord(ctx context.Context, from int) (uint64, error)
}

// WordSize is the size of a word, in bytes.
const WordSize = 8

// A Stage is memory of this rank from which blocks leave as they are.
type Stage struct {
	Mem     []byte
	Region  *fabric.Region            // holds Mem; nil: the layer finds it
	Release func(orphaned bool) error // nil: it goes with the link's memory
}
