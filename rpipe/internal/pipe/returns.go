package pipe

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

var native = binary.NativeEndian

// announceAfter is about how long a reader keeps counts and freed ranges from a writer that
// does not wait for them. With a longer time, quiet pipes take fewer announcements.
const announceAfter = 8 * beat

// returns tells the writer how many blocks the reader has read, and what it has freed. One write
// announces them as soon as there is much to tell or the writer waits for it, else a moment later.
// Without room in the queue the composer makes it up once there is room: tags that are posted twice
// are mistaken for others a lap later.
//
// Invariant: a goroutine that holds the mutex waits for nothing and makes no progress,
// since the composer takes the mutex.
type returns struct {
	p     *End
	often int           // blocks of which the writer hears at once
	owing atomic.Bool   // something is not announced yet, and neither in line
	heard atomic.Uint64 // the writer's wanted flag as it was last served
	read  atomic.Uint64 // blocks; moved by the goroutine that reads
	told  atomic.Uint64 // the credit that was announced last; moved under the mutex

	Mu       sync.Mutex
	tags     tagSink
	gather   func() error // enters blocks that were freed without the mutex into tags; nil: Free takes the mutex
	news     announcement // being posted, or posted
	composer fabric.Composer
	queued   bool          // the composer is in line, and announces all there is
	last     uint64        // the value of the end flag, which is put behind all; 0: none yet
	armed    bool          // the announcer comes
	since    time.Duration // as it has seen, for how long something is not announced
	muted    bool          // nothing is put at the writer any more
	writes   uint64
}

// An announcement is tags and a credit in one write.
type announcement struct {
	words  []byte // tags that are still to be put
	at     int    // in the ring of tags
	credit uint64 // the flag behind them
	wanted uint64 // the writer's wanted flag as it was packed
	posted bool
}

// pieceBytes is how many bytes of tags go in one put: so many are copied on the
// way to any device.
const pieceBytes = 32 << 10

// A tagSink is where freed ranges go. All calls come under the returns' mutex.
type tagSink interface {
	Free(r rmalloc.Range) error
	// pressing reports whether there is enough for an announcement.
	pressing(s *Spec) bool
	// owes reports whether some of it is not announced.
	owes() bool
	// pack returns the words to put at an offset in the writer's ring of tags, if any. It also
	// returns the count of all tags with them.
	pack() (at int, words []byte, tail uint32, err error)
}

// newReturns makes the reader's half of synchronization: pending tags that it announces, or a ring of
// tags that the writer reads.
func newReturns(p *End) *returns {
	r := &returns{p: p, often: max(p.Spec.Width/2, 1)}
	if p.Spec.sync == Deferred {
		r.tags = &pendingTags{pending: rmalloc.NewPending(p.Spec.blocks), ring: rmalloc.NewTagRing(p.Spec.blocks)}
	} else {
		r.tags = &publisher{entries: p.Data[p.tagsAt():], ring: rmalloc.NewTagRing(p.Spec.blocks)}
	}
	r.news.posted = true
	r.composer.Compose = r.compose
	return r
}

// wasRead counts a block that was read. Called with mu held, as the next ones.
func (r *returns) wasRead() {
	r.read.Store(r.read.Load() + 1)
	r.considerRead()
}

// considerRead has the count of blocks leave, if it shall now. Called with the mutex held.
func (r *returns) considerRead() { r.consider(WantsWidth, r.unheard() >= r.often) }

// unheard is how many blocks were read of which the writer has not heard.
func (r *returns) unheard() int { return int(uint32(r.read.Load()) - uint32(r.told.Load())) }

// countQuietly counts a block that was read, without the mutex as long as the writer
// need not hear of it now. Either the load of owing shows that no goroutine is about to
// announce it, or the goroutine that stored owing sees the block.
func (r *returns) countQuietly(wanted *atomic.Uint64) {
	r.read.Store(r.read.Load() + 1)
	if !r.owing.Load() || r.unheard() >= r.often || wanted.Load() != r.heard.Load() {
		r.Mu.Lock()
		r.considerRead()
		r.Mu.Unlock()
	}
}

// freed takes a range that is the writer's again.
func (r *returns) freed(freed rmalloc.Range) error {
	if err := r.tags.Free(freed); err != nil {
		return r.p.Breaks(err)
	}
	r.considerFreed()
	return nil
}

// considerFreed has freed ranges leave, if they shall now. Called with the mutex held.
func (r *returns) considerFreed() { r.consider(WantsMemory, r.tags.pressing(&r.p.Spec)) }

// consider posts the announcement, if it shall leave now, and has the announcer do so
// otherwise. This rank stores the freed ranges, and loads the writer's word behind that: either
// the word shows that the writer waits, or the writer sees the ranges. Over a window the load may come
// first: the announcer, or the writer's next look, then ends the wait.
func (r *returns) consider(kind uint64, now bool) {
	if r.muted || r.queued || !r.p.Joined.Load() {
		return
	}
	wanted := r.p.Flag(r.p.WantedFlag())
	if now || wanted&kind != 0 && wanted != r.heard.Load() {
		_ = r.postNow() // a failure is the writer's end, which Read meets
	}
	r.later()
}

// later has the announcer come, if something is left to announce.
func (r *returns) later() {
	if r.queued || r.unheard() == 0 && !r.tags.owes() {
		return
	}
	r.owing.Store(true)
	if r.armed || r.p.Patience < 0 {
		return
	}
	r.armed = true
	r.p.Registry.announcer.add(r)
}

// postNow posts all there is, or has the composer do so, of which ErrNoRoom tells.
func (r *returns) postNow() error {
	switch {
	case r.muted || !r.p.Joined.Load():
		return nil
	case r.queued:
		return fabric.ErrNoRoom
	}
	to := r.p.Queue()
	err := r.Post(to.NoWait())
	if errors.Is(err, fabric.ErrNoRoom) {
		r.queued = true
		r.owing.Store(false) // Read shall not look for it again and again
		to.Later(&r.composer)
	}
	return err
}

// compose posts all there is, once there is room.
func (r *returns) compose(ctx context.Context) error {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.muted {
		return nil
	}
	err := r.Post(ctx)
	r.queued = errors.Is(err, fabric.ErrNoRoom)
	return err
}

// Post puts all there is at the writer, and behind it the end flag, if it is due. Nothing
// follows that.
func (r *returns) Post(ctx context.Context) error {
	err := r.announce(ctx)
	if err == nil && r.last != 0 {
		err = r.p.PutFlag(ctx, 0, nil, EndFlag, r.last)
		r.muted = err == nil
	}
	return err
}

// announce puts all there is at the writer, ahead of it the rest of an announcement that
// found no room.
func (r *returns) announce(ctx context.Context) error {
	if err := r.deliver(ctx); err != nil {
		return err
	}
	wanted := r.p.Flag(r.p.WantedFlag())
	r.since = 0
	r.owing.Store(false) // before the loads of read and of the freed blocks
	if r.gather != nil {
		if err := r.gather(); err != nil {
			return err
		}
	}
	at, words, tail, err := r.tags.pack()
	if err != nil {
		return r.p.Breaks(err)
	}
	credit := uint64(tail)<<32 | uint64(uint32(r.read.Load()))
	if credit == r.told.Load() {
		return nil
	}
	r.news = announcement{words: words, at: at, credit: credit, wanted: wanted}
	return r.deliver(ctx)
}

// deliver puts the announcement at the writer, unless it is posted.
func (r *returns) deliver(ctx context.Context) error {
	a := &r.news
	if a.posted {
		return nil
	}
	for len(a.words) > pieceBytes {
		// Nothing new is told until the last piece is there.
		if err := r.Put(ctx, pieceBytes, r.told.Load()); err != nil {
			return err
		}
	}
	if err := r.Put(ctx, len(a.words), a.credit); err != nil {
		return err
	}
	// A moved count of blocks alone is no response to a writer that waits for memory.
	if a.wanted&WantsMemory == 0 || a.credit>>32 != r.told.Load()>>32 {
		r.heard.Store(a.wanted)
	}
	a.posted = true
	r.told.Store(a.credit)
	r.writes++
	return nil
}

// Put puts the next n bytes of the announcement at the writer, and a credit. Under ctx a
// put waits for nothing. So an error means that the writer does not see it.
func (r *returns) Put(ctx context.Context, n int, credit uint64) error {
	a := &r.news
	err := r.p.PutFlag(ctx, r.p.tagsAt()+a.at, a.words[:n], CreditFlag, credit)
	if err == nil {
		a.words, a.at = a.words[n:], a.at+n
	}
	return err
}

// Serve posts the announcement, if the writer waits for it.
func (r *returns) Serve() {
	if !r.waited() {
		return
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if err := r.postNow(); err != nil {
		r.owing.Store(false) // it is in line, or the writer is gone
		return
	}
	r.later()
}

// waited reports whether the writer waits and there is something to tell it.
func (r *returns) waited() bool {
	return r.owing.Load() && r.p.Flag(r.p.WantedFlag()) != r.heard.Load()
}

// tick announces what the writer waits for, or what has waited long enough.
func (r *returns) tick() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.armed = false
	if r.muted || r.queued {
		return
	}
	r.since += beat
	if r.since >= r.p.Patience || r.p.Flag(r.p.WantedFlag()) != r.heard.Load() {
		if r.postNow() != nil {
			return // it is in line, or the writer is gone
		}
	}
	r.later()
}

// Sync posts the announcement. If ctx ends first, it leaves later.
func (r *returns) Sync(ctx context.Context) error {
	for {
		r.Mu.Lock()
		err := r.postNow()
		r.Mu.Unlock()
		if !errors.Is(err, fabric.ErrNoRoom) {
			return err
		}
		if err := r.p.Queue().Await(ctx, &r.composer); err != nil {
			return err
		}
	}
}

// end puts the last word at the writer. Nothing follows it. If ctx ends first, it leaves
// later.
func (r *returns) end(ctx context.Context, why uint64) error {
	r.Mu.Lock()
	r.last = why
	r.Mu.Unlock()
	return r.Sync(ctx)
}

// mute lets nothing be put at the writer any more.
func (r *returns) mute() {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.muted = true
}
