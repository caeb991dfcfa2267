package fabric

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// lostGrace is how long a broken connection waits for the launcher's word that
// the rank died, before the rank counts as unreachable. Death is told at once;
// a reset connection is often its first sign.
const lostGrace = time.Second

// health knows which ranks are gone. epoch moves with every change, so that a
// wait needs one load to see that there is news.
type health struct {
	f     *Fabric
	epoch atomic.Uint64
	any   atomic.Bool // someone is gone: most jobs never take the lock to look

	mu     sync.Mutex
	gone   map[int]*RankError
	ended  *RankError // what became of the job, for every rank
	peers  map[int]*Peer
	timers map[int]*time.Timer
}

func (h *health) init(f *Fabric) {
	h.f, h.gone, h.peers, h.timers = f, map[int]*RankError{}, map[int]*Peer{}, map[int]*time.Timer{}
}

// of returns what became of a rank, nil while it is well.
func (h *health) of(rank int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.fate(rank); e != nil {
		return e
	}
	return nil
}

// orElse returns what became of a rank, or err while it is well.
func (h *health) orElse(rank int, err error) error {
	if gone := h.of(rank); gone != nil {
		return gone
	}
	return err
}

// fate is of for a caller that holds mu.
func (h *health) fate(rank int) *RankError {
	if e := h.gone[rank]; e != nil || h.ended == nil {
		return e
	}
	return &RankError{Rank: rank, Kind: h.ended.Kind, Cause: h.ended.Cause}
}

// watch has p told when its rank is gone, or at once if it is.
func (h *health) watch(p *Peer) {
	h.mu.Lock()
	h.peers[p.rank] = p
	e := h.fate(p.rank)
	h.mu.Unlock()
	if e != nil {
		p.lose(e)
	}
}

// set records the first thing that became of a rank and wakes everyone. Whoever
// sees it, by whichever way, sees it by all: what it asks of the rank next fails.
func (h *health) set(e *RankError) {
	h.mu.Lock()
	if h.gone[e.Rank] != nil {
		h.mu.Unlock()
		return
	}
	h.gone[e.Rank] = e
	h.any.Store(true)
	p := h.peers[e.Rank]
	if p != nil {
		p.fail.CompareAndSwap(nil, e)
	}
	h.epoch.Add(1)
	h.mu.Unlock()
	if p != nil {
		p.cut()
	}
	h.f.bell.Ring()
}

// end is set for every rank, of what became of the job. Gone names none of them: it is
// the job that is over.
func (h *health) end(e *RankError) {
	h.mu.Lock()
	if h.ended == nil {
		h.ended = e
	}
	lost := slices.Collect(maps.Values(h.peers))
	for _, p := range lost {
		p.fail.CompareAndSwap(nil, h.fate(p.rank))
	}
	h.epoch.Add(1)
	h.mu.Unlock()
	for _, p := range lost {
		p.cut()
	}
	h.f.bell.Ring()
}

// suspect starts the grace period of a rank whose connection broke.
func (h *health) suspect(rank int, cause string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone[rank] != nil || h.timers[rank] != nil {
		return
	}
	h.timers[rank] = time.AfterFunc(lostGrace, func() {
		h.set(&RankError{Rank: rank, Kind: ErrUnreachable, Cause: cause})
	})
}

func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.timers {
		t.Stop()
	}
}

// RankDied records the launcher's word that a rank's process is gone.
func (f *Fabric) RankDied(rank int, cause string) {
	f.health.set(&RankError{Rank: rank, Kind: ErrRankDead, Cause: cause})
}

// Health moves whenever a rank is newly gone; Gone tells who.
func (f *Fabric) Health() uint64 { return f.health.epoch.Load() }

// Gone returns what became of the first of ranks that is gone.
func (f *Fabric) Gone(ranks []int) error {
	if !f.health.any.Load() {
		return nil
	}
	f.health.mu.Lock()
	defer f.health.mu.Unlock()
	for _, r := range ranks {
		if e := f.health.gone[r]; e != nil {
			return e
		}
	}
	return nil
}

// Fate returns what became of a rank, or of the whole job, nil while it is well.
func (f *Fabric) Fate(rank int) error { return f.health.of(rank) }

// Poke wakes everyone who waits and has them look at what became of whom.
func (f *Fabric) Poke() {
	f.health.epoch.Add(1)
	f.bell.Ring()
}

// End has every operation, under way or to come, fail with kind.
func (f *Fabric) End(kind error, cause string) {
	f.health.end(&RankError{Kind: kind, Cause: cause})
}

// lose marks the peer and flushes whatever is under way to it.
func (p *Peer) lose(e *RankError) {
	p.fail.CompareAndSwap(nil, e)
	p.cut()
}

// cut flushes whatever is under way to a peer that is marked.
func (p *Peer) cut() {
	if p.qp != nil {
		// An error here means that the queue pair is in ERR or closed already.
		_ = p.qp.Modify(context.WithoutCancel(p.f.ctx), driver.StateErr, driver.Attr{})
	}
	p.f.bell.Ring()
}

// asyncEvent takes a provider's news about a connection.
func (f *Fabric) asyncEvent(b *binding, ev driver.AsyncEvent) {
	switch {
	case f.closed.Load():
		return
	case ev.Kind == driver.EventCompletion:
		f.completionEvent(b)
		return
	case ev.Kind != driver.EventQPFatal:
		return
	}
	cause := "connection over " + b.name + " lost"
	if ev.Err != nil {
		cause += ": " + ev.Err.Error()
	}
	rank, passive, ok := f.rankOf(b, ev.QP)
	if !ok || passive && !errors.Is(ev.Err, driver.ErrLost) {
		// A peer that broke the rules, or gave its end of the connection up, learns of that
		// itself. An attempt of its own that came to nothing says nothing of the peer.
		return
	}
	if errors.Is(ev.Err, driver.ErrExhausted) {
		f.health.refused(rank, driver.RetryExceeded, ev.Err)
		return
	}
	f.health.suspect(rank, cause)
}

// rankOf tells whose a queue pair is, and whether it is the passive end.
func (f *Fabric) rankOf(b *binding, qp uint32) (rank int, passive, ok bool) {
	f.health.mu.Lock()
	for _, p := range f.health.peers {
		if p.bind == b && p.qp.Num() == qp {
			f.health.mu.Unlock()
			return p.rank, false, true
		}
	}
	f.health.mu.Unlock()
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for from, in := range f.inbound {
		if in.bind == b && in.qp.Num() == qp {
			return from, true, true
		}
	}
	return 0, false, false
}
