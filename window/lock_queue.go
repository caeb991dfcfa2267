package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An entry is 0, that of a rank that waits, or that of a rank to which a decider gives the lock:
//
//	waits:    63   2 1    0    claimed:  63               1 0
//	          ticket mode 1              decider's rank + 1 0
//
// A decider adds 1 to a word of the rank's own memory, grants, when it has given the lock to
// the rank. The rank compares it with the number of its earlier grants, which may arrive late.
const (
	waitingBit = 1
	modeShift  = 1
	ticketBits = 2
)

func entryFor(ticket uint64, m Mode) uint64 {
	return ticket<<ticketBits | uint64(m)<<modeShift | waitingBit
}

func claimedBy(rank int) uint64       { return uint64(rank+1) << 1 }
func deciderOf(entry uint64) int      { return int(entry>>1) - 1 }
func waits(entry uint64) bool         { return entry&waitingBit != 0 }
func modeOf(entry uint64) Mode        { return Mode(entry >> modeShift & 1) }
func (l latch) entryOf(rank int) int  { return l.c.layout.entries + rank*8 }
func (l latch) grants() (offset int)  { return l.c.layout.grants + l.home*8 }
func (l latch) granted() (now uint64) { return l.c.word(l.grants()).Load() }

// entries reads the entries of all ranks.
func (l latch) entries() ([]uint64, error) {
	n := len(l.c.remotes)
	bytes := make([]byte, n*8)
	if l.r.Mem != nil {
		atomics.LoadWords(bytes, l.r.Mem[l.c.layout.entries:][:n*8])
	} else if err := l.readEntries(bytes); err != nil {
		return nil, err
	}
	entries := make([]uint64, n)
	for i := range entries {
		entries[i] = atomics.Uint(bytes[i*8:][:8])
	}
	return entries, nil
}

// readEntries reads pieces whose words a device loads whole.
func (l latch) readEntries(dst []byte) error {
	ctx := context.Background()
	var requests []fabric.Request
	var errs []error
	for at := 0; at < len(dst) && len(errs) == 0; at += driver.WholeRead {
		piece := dst[at:min(at+driver.WholeRead, len(dst))]
		q, err := l.r.StartRead(ctx, l.c.layout.entries+at, piece)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		requests = append(requests, q)
	}
	for _, q := range requests {
		errs = append(errs, q.Wait(ctx))
	}
	return errors.Join(errs...)
}

// choose returns the ranks that get the lock next, and whether others wait. Behind a writer these
// are all readers, if there are any; otherwise the writer with the lowest ticket, if there is one.
// A writer gets nothing while readers may have the lock, and readers nothing beside them while a
// writer waits. Ranks that are gone get nothing.
func (l latch) choose(entries []uint64, behind Mode, held bool) (chosen []int, others bool) {
	var readers, writers []int
	for rank, e := range entries {
		switch {
		case !l.mayGet(rank, e):
		case modeOf(e) == Shared:
			readers = append(readers, rank)
		default:
			writers = append(writers, rank)
		}
	}
	switch {
	case mutant.LockHandedToAll:
		return append(writers, readers...), false
	case len(writers) == 0 || behind == Exclusive && len(readers) > 0:
		return readers, len(writers) > 0
	case held:
		return nil, true
	}
	first := slices.MinFunc(writers, func(a, b int) int { return cmp.Compare(entries[a], entries[b]) })
	return []int{first}, len(writers)+len(readers) > 1
}

// mayGet reports whether a rank waits and is not gone.
func (l latch) mayGet(rank int, entry uint64) bool {
	return waits(entry) && l.c.team.Gone(l.c.team.Members[rank:rank+1]) == nil
}

// writerWaits reports whether a rank waits for an exclusive lock.
func (l latch) writerWaits() (bool, error) {
	entries, err := l.entries()
	for rank, e := range entries {
		if modeOf(e) == Exclusive && l.mayGet(rank, e) {
			return true, err
		}
	}
	return false, err
}

// tell adds to the grants of a rank and wakes it. The first word to a rank connects to it, for which
// the caller does not wait. A rank that is gone needs no word.
func (l latch) tell(rank int, add uint64) error {
	mutant.Hesitate(mutant.Message)
	if l.c.remotes[rank].Load() != nil {
		return l.post(rank, add)
	}
	l.c.locks.later(l.c, func() { _ = l.post(rank, add) })
	return nil
}

// post adds to a rank's grants. A rank that is gone waits no more, and so is no error. Free may have begun here: it
// waits for this goroutine, and the rank waits for its grant.
func (l latch) post(rank int, add uint64) (err error) {
	ctx := context.Background()
	r := l.c.remotes[rank].Load()
	if r == nil {
		r, err = l.c.connect(ctx, rank)
	}
	if err == nil {
		err = r.PostFlag(ctx, fabric.Flag{Offset: l.grants(), Add: true, Value: add})
	}
	if err != nil && l.c.team.Gone(l.c.team.Members[rank:rank+1]) != nil {
		return nil //nolint:nilerr // it waits no more
	}
	return err
}

// wait queues for the lock in the mode m, and returns once this rank has it. The goroutine has
// the gate, and gives it back.
func (l latch) wait(ctx context.Context, g *gate, m Mode) error {
	if g.doubt != nil {
		g.leave(l.c)
		return g.doubt
	}
	entry, state, err := l.queue(m)
	if err != nil {
		g.doubt = err // the entry may be there
		g.leave(l.c)
		return err
	}
	err = l.abandonedBy(state)
	if idle := state&^waitersBit == 0; err == nil && (idle || m == Shared && state&^readersMask == 0) {
		err = l.inherit(state | waitersBit)
	}
	if err == nil {
		err = l.c.team.AwaitMapped(ctx, func() bool { return l.granted() > g.granted || l.c.freed.Load() })
		err = l.ended(ctx, err, state)
	}
	if err == nil && l.granted() == g.granted+1 {
		g.granted++
		g.leave(l.c)
		return nil
	}
	return l.withdraw(g, m, entry, err)
}

// queue enters this rank among those that wait. It returns its entry, and the state before.
func (l latch) queue(m Mode) (entry, state uint64, err error) {
	ticket, err := l.at(l.c.layout.lock+ticketAt, driver.AtomicAdd, 1, 0)
	if err != nil {
		return 0, 0, err
	}
	entry = entryFor(ticket, m)
	if err = l.update(l.entryOf(l.c.team.Rank), driver.AtomicSwap, entry); err != nil {
		return entry, 0, err
	}
	state, err = l.state(driver.AtomicOr, waitersBit, 0)
	return entry, state, err
}

// ended explains the end of a wait: of ctx, of the window, or of a rank.
func (l latch) ended(ctx context.Context, err error, state uint64) error {
	if err != nil && ctx.Err() != nil && writerOf(state) >= 0 {
		if writerOf(state) == l.c.team.Rank {
			return fmt.Errorf("%w; this rank itself had the lock as the call began to wait: unlock it first", err)
		}
		return fmt.Errorf("%w; rank %d had the lock as this rank began to wait", err, writerOf(state))
	}
	if err == nil && l.c.freed.Load() && l.granted()&abandonedBit == 0 {
		return ErrFreed
	}
	return err
}

// withdraw takes this rank out of the queue because of err. If a decider has given the lock to this
// rank, it takes the lock and returns nil. If word of that is still on its way, the lock and the gate
// go back when it comes.
func (l latch) withdraw(g *gate, m Mode, entry uint64, err error) error {
	seen, failed := l.at(l.entryOf(l.c.team.Rank), driver.AtomicCmpSwap, 0, entry)
	switch {
	case failed != nil:
		g.doubt = failed // it may be granted yet
	case seen != entry:
		return l.late(g, m, deciderOf(seen), err)
	case err == nil: // the holder abandoned the lock
		state, failed := l.state(driver.AtomicLoad, 0, 0)
		err = errors.Join(l.abandonedBy(state), failed)
	case m == Exclusive:
		failed = l.reconsider()
	}
	g.leave(l.c)
	return errors.Join(err, failed)
}

// reconsider has readers share the lock that waited behind this rank's entry only.
func (l latch) reconsider() error {
	state, err := l.state(driver.AtomicLoad, 0, 0)
	if err == nil {
		err = l.inherit(state)
	}
	return err
}

// late is withdraw behind a grant.
func (l latch) late(g *gate, m Mode, decider int, err error) error {
	c := l.c
	came := func() bool { return l.granted()&^abandonedBit == g.granted+1 }
	if came() {
		g.granted++
		g.leave(c)
		return nil
	}
	c.locks.later(c, func() {
		defer g.leave(c)
		gone := func() error { return c.team.Fate(c.team.Members[decider]) }
		_ = c.team.Wait(context.Background(), func() bool { return came() || gone() != nil })
		if !came() {
			g.doubt = gone()
			return
		}
		g.granted++
		_ = l.release(m)
	})
	return err
}
