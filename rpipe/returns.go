package rpipe

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

var native = binary.NativeEndian

// announceAfter is about how long the writer does not know what was read and freed,
// while it does not wait for that: the longer, the fewer announcements pipes take
// that little goes through.
const announceAfter = 8 * beat

// returns is what goes back from the reader to the writer: how many blocks were
// read, and what was freed. It leaves, in one write, as soon as there is much of
// it or the writer waits for it, else a moment later. Nobody waits for room in a
// queue meanwhile: what does not get through is tried again when the reminder comes.
type returns struct {
	p     *pipe
	often int           // blocks of which the writer hears at once
	owing atomic.Bool   // something is not announced yet, and the reminder comes
	heard atomic.Uint64 // the writer's wanted flag as it was last served
	read  atomic.Uint64 // blocks; moved by the goroutine that reads
	told  atomic.Uint64 // the credit that was announced last; moved under the mutex

	mu     sync.Mutex
	tags   tagSink
	parcel parcel        // on its way, or stuck
	armed  bool          // the reminder comes
	since  time.Duration // as it has seen, for how long something is not announced
	muted  bool          // nothing is put at the writer any more
	writes uint64
	noWait context.Context // has ended
}

// A parcel is an announcement.
type parcel struct {
	words  []byte // tags that are still to be put
	at     int    // in the ring of tags
	credit uint64 // the flag behind them
	wanted uint64 // what the writer waited for as it was packed
	left   bool   // the writer has it
}

// pieceBytes is how many bytes of tags go in one put: so many are copied on the
// way to any device.
const pieceBytes = 32 << 10

// A tagSink is where freed ranges go. All calls come under the returns' mutex.
type tagSink interface {
	free(r rmalloc.Range) error
	// pressing tells that there is enough for an announcement.
	pressing(s *spec) bool
	// owes tells that some of it is not announced.
	owes() bool
	// pack returns the words to put at an offset in the writer's ring of tags, if
	// any, and the count of all tags with them.
	pack() (at int, words []byte, tail uint32, err error)
}

func newReturns(p *pipe) *returns {
	r := &returns{p: p, often: max(p.spec.width/2, 1)}
	if p.spec.sync == Deferred {
		r.tags = newAnnouncer(&p.spec)
	} else {
		r.tags = &publisher{entries: p.local()[p.tagsAt():], ring: rmalloc.NewTagRing(p.spec.blocks)}
	}
	r.parcel.left = true
	r.noWait = noWait()
	return r
}

// noWait returns a context under which a put that finds no room in its queue fails with
// ErrWouldBlock at once.
func noWait() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrWouldBlock)
	return ctx
}

// wasRead counts a block that was read. Called with mu held, as the next ones.
func (r *returns) wasRead() {
	r.read.Store(r.read.Load() + 1)
	r.considerRead()
}

func (r *returns) considerRead() { r.consider(wantsWidth, r.unheard() >= r.often) }

// unheard is how many blocks were read of which the writer has not heard.
func (r *returns) unheard() int { return int(uint32(r.read.Load()) - uint32(r.told.Load())) }

// countQuietly counts a block that was read, without the mutex as long as the writer
// need not hear of it now. Either the load of owing shows that nobody would announce
// it, or whoever has stored that sees the block.
func (r *returns) countQuietly(wanted *atomic.Uint64) {
	r.read.Store(r.read.Load() + 1)
	if !r.owing.Load() || r.unheard() >= r.often || wanted.Load() != r.heard.Load() {
		r.mu.Lock()
		r.considerRead()
		r.mu.Unlock()
	}
}

// freed takes a range that is the writer's again.
func (r *returns) freed(freed rmalloc.Range) error {
	if err := r.tags.free(freed); err != nil {
		return r.p.breaks(err)
	}
	r.consider(wantsMemory, r.tags.pressing(&r.p.spec))
	return nil
}

// consider announces what there is, if it shall leave now, and has the reminder do so
// otherwise. The load of the writer's word comes after what was freed is stored:
// either it shows that the writer waits, or the writer sees that.
func (r *returns) consider(kind uint64, now bool) {
	if r.muted || !r.p.joined.Load() {
		return
	}
	wanted := r.p.flag(r.p.wantedFlag())
	if now || wanted&kind != 0 && wanted != r.heard.Load() {
		// A failure is tried again, or else the writer's end, which Read meets.
		_ = r.announce(r.noWait)
	}
	r.later()
}

// later has the reminder come, if something is left to announce.
func (r *returns) later() {
	if r.parcel.left && r.unheard() == 0 && !r.tags.owes() {
		return
	}
	r.owing.Store(true)
	if r.armed || r.p.patience < 0 && r.parcel.left { // what is stuck has nobody else
		return
	}
	r.armed = true
	r.p.registry.reminder.add(r)
}

// announce puts all there is at the writer, ahead of it what got stuck.
func (r *returns) announce(ctx context.Context) error {
	if err := r.deliver(ctx); err != nil {
		return err
	}
	wanted := r.p.flag(r.p.wantedFlag())
	at, words, tail, err := r.tags.pack()
	if err != nil {
		return r.p.breaks(err)
	}
	r.since = 0
	r.owing.Store(false) // before the load of what was read
	credit := uint64(tail)<<32 | uint64(uint32(r.read.Load()))
	if credit == r.told.Load() {
		return nil
	}
	r.parcel = parcel{words: words, at: at, credit: credit, wanted: wanted}
	return r.deliver(ctx)
}

// deliver puts the parcel at the writer, unless it has left.
func (r *returns) deliver(ctx context.Context) error {
	p := &r.parcel
	if p.left {
		return nil
	}
	for len(p.words) > pieceBytes {
		// Nothing new is told until the last piece is there.
		if err := r.put(ctx, pieceBytes, r.told.Load()); err != nil {
			return err
		}
	}
	if err := r.put(ctx, len(p.words), p.credit); err != nil {
		return err
	}
	// Who waits for memory is not served by word of what was read.
	if p.wanted&wantsMemory == 0 || p.credit>>32 != r.told.Load()>>32 {
		r.heard.Store(p.wanted)
	}
	p.left = true
	r.told.Store(p.credit)
	r.writes++
	return nil
}

// put puts the next n bytes of the parcel at the writer, and a credit. Whatever
// ctx allows, that is a put which waits for nothing: of one that gave up while it
// was under way nobody could tell whether the writer sees it, and tags that come
// once more, when they were taken, are mistaken for others a lap later.
func (r *returns) put(ctx context.Context, n int, credit uint64) error {
	p := &r.parcel
	for {
		err := r.p.putFlag(r.noWait, r.p.tagsAt()+p.at, p.words[:n], creditFlag, credit)
		if err == nil {
			p.words, p.at = p.words[n:], p.at+n
			return nil
		}
		switch {
		case !errors.Is(err, ErrWouldBlock):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		// This flag tells nothing new, and waits for room in the queue.
		if err := r.p.putFlag(ctx, 0, nil, creditFlag, r.told.Load()); err != nil {
			return err
		}
	}
}

// serve announces what there is, if the writer waits for it.
func (r *returns) serve() {
	if !r.waited() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muted {
		return
	}
	err := r.announce(r.noWait)
	r.later()
	if err != nil {
		r.owing.Store(false) // the reminder's from here on: Read shall not look for it again and again
	}
}

// waited tells that the writer waits and there is something to tell it.
func (r *returns) waited() bool {
	return r.owing.Load() && r.p.flag(r.p.wantedFlag()) != r.heard.Load()
}

// sync announces what there is.
func (r *returns) sync(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muted || !r.p.joined.Load() {
		return nil
	}
	err := r.announce(ctx)
	r.later()
	return err
}

// tick announces what the writer waits for, or what has waited long enough.
func (r *returns) tick() {
	if !r.mu.TryLock() { // by a sync, maybe, which waits for room in the queue to the writer
		r.p.registry.reminder.add(r)
		return
	}
	defer r.mu.Unlock()
	r.armed = false
	if r.muted {
		return
	}
	stuck := !r.parcel.left
	if r.since += beat; r.since < r.p.patience && !stuck && r.p.flag(r.p.wantedFlag()) == r.heard.Load() {
		r.later()
		return
	}
	if r.announce(r.noWait) == nil || r.p.fate() == nil {
		r.later()
	}
}

// end puts the last word at the writer. Nothing follows it.
func (r *returns) end(ctx context.Context, why uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muted || !r.p.joined.Load() {
		return nil
	}
	err := r.announce(ctx)
	if err == nil {
		err = r.p.putFlag(ctx, 0, nil, endFlag, why)
	}
	r.muted = err == nil
	return err
}

// mute lets nothing be put at the writer any more.
func (r *returns) mute() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.muted = true
}
