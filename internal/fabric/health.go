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

// lostGrace is the time between a broken connection and the verdict that the peer is
// unreachable. The launcher reports a death at once, but a reset connection is often its
// first sign.
const lostGrace = time.Second

// health knows which ranks are gone. Its epoch moves with every change. A waiting
// goroutine so sees by one load that a rank's state changed.
type health struct {
	f        *Fabric
	epoch    atomic.Uint64
	any      atomic.Bool // a rank is gone or a peer lost: in most jobs none is, and no caller takes the lock
	refusing atomic.Bool // likewise: a rank refused a request

	mu        sync.Mutex
	gone      map[int]*RankError
	left      map[abandoned]bool
	refusals  map[int]*RankError
	requested map[int]time.Time // when Left last sent a request to a rank
	ended     *RankError        // the end of the job, for every rank; Rank -1: with the number of each
	peers     map[int]*Peer
	timers    map[int]*time.Timer
}

func (h *health) init(f *Fabric) {
	h.f, h.gone, h.left, h.requested = f, map[int]*RankError{}, map[abandoned]bool{}, map[int]time.Time{}
	h.refusals = map[int]*RankError{}
	h.peers, h.timers = map[int]*Peer{}, map[int]*time.Timer{}
}

// of returns a rank's error, nil while the rank is well.
func (h *health) of(rank int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.fate(rank); e != nil {
		return e
	}
	return nil
}

// orElse returns a rank's error, or err while the rank is well.
func (h *health) orElse(rank int, err error) error {
	if gone := h.of(rank); gone != nil {
		return gone
	}
	return err
}

// fate returns what of returns, for a caller that holds mu.
func (h *health) fate(rank int) *RankError {
	if e := h.gone[rank]; e != nil || h.ended == nil {
		return e
	}
	if h.ended.Rank >= 0 {
		return h.ended
	}
	return &RankError{Rank: rank, Kind: h.ended.Kind, Cause: h.ended.Cause}
}

// watch has p fail when its rank is gone, or at once if it is gone already.
func (h *health) watch(p *Peer) {
	h.mu.Lock()
	h.peers[p.rank] = p
	e := h.fate(p.rank)
	h.mu.Unlock()
	if e != nil {
		p.lose(e)
	}
}

// set records the first error of a rank and wakes all goroutines that wait. A goroutine
// that sees the error in one place sees it in all: its next operation on the rank fails.
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
	h.f.expectNothing(func(rank int) bool { return rank == e.Rank })
	h.f.bell.Ring()
}

// end records the end of the job as the error of every rank. Gone names none of them: the
// job is over, not a rank.
func (h *health) end(e *RankError) {
	h.mu.Lock()
	if h.ended == nil {
		h.ended = e
	}
	h.any.Store(true)
	lost := slices.Collect(maps.Values(h.peers))
	for _, p := range lost {
		p.fail.CompareAndSwap(nil, h.fate(p.rank))
	}
	h.epoch.Add(1)
	h.mu.Unlock()
	for _, p := range lost {
		p.cut()
	}
	h.f.expectNothing(func(int) bool { return true })
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

// close stops the timers of suspicions.
func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.timers {
		t.Stop()
	}
}

// RankDied records the launcher's report that a rank's process is gone.
func (f *Fabric) RankDied(rank int, cause string) {
	f.health.set(&RankError{Rank: rank, Kind: ErrRankDead, Cause: cause})
}

// Health returns a count that moves with each rank that is newly gone or newly refuses requests, and with each
// region that is newly abandoned. Gone, Refusal and Presence tell which.
func (f *Fabric) Health() uint64 { return f.health.epoch.Load() }

// Gone returns the error of the first of ranks that is gone.
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

// lost returns the error of the first of ranks that is gone, or whose peer is lost.
func (h *health) lost(ranks []int) error {
	if !h.any.Load() {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range ranks {
		if e := h.gone[r]; e != nil {
			return e
		}
		if p := h.peers[r]; p != nil && p.Err() != nil {
			return p.Err()
		}
	}
	return nil
}

// Fate returns the error of a rank, or of the whole job, nil while all is well.
func (f *Fabric) Fate(rank int) error { return f.health.of(rank) }

// Poke wakes all goroutines that wait and has them look at the ranks' states.
func (f *Fabric) Poke() {
	f.health.epoch.Add(1)
	f.bell.Ring()
}

// End has every operation, under way or later, fail with kind.
func (f *Fabric) End(kind error, cause string) {
	f.health.end(&RankError{Rank: -1, Kind: kind, Cause: cause})
}

// EndWith has every operation, on any rank, fail with e: the job ends with the rank in e.
func (f *Fabric) EndWith(e *RankError) { f.health.end(e) }

// lose marks the peer and flushes the operations under way to it.
func (p *Peer) lose(e *RankError) {
	p.f.health.any.Store(true) // ahead of the error, which callers may have seen
	p.fail.CompareAndSwap(nil, e)
	p.cut()
}

// cut flushes the operations under way to a marked peer.
func (p *Peer) cut() {
	if qp := p.qp.Load(); qp != nil {
		// An error here means that the queue pair is in ERR or closed already.
		_ = qp.Modify(context.WithoutCancel(p.f.ctx), driver.StateErr, driver.Attr{})
	}
	for _, s := range p.stripes.further() {
		s.lose(p.fail.Load())
	}
	p.f.bell.Ring()
}

// lostOver begins the cause of a lost connection, which an event or a failed request shows
// first. Users read the same in both cases.
func lostOver(b *binding) string { return "connection over " + b.name + " lost" }

// asyncEvent handles a provider's event about a connection.
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
	cause := lostOver(b)
	if ev.Err != nil {
		cause += ": " + ev.Err.Error()
	}
	rank, passive, ok := f.rankOf(b, ev.QP)
	if !ok || passive && !errors.Is(ev.Err, driver.ErrLost) {
		// A peer that broke the rules, or closed its end of the connection, learns of that
		// itself. An attempt of the peer's that failed says nothing about the peer.
		return
	}
	if errors.Is(ev.Err, driver.ErrExhausted) {
		f.health.refused(rank, driver.RetryExceeded, ev.Err)
		return
	}
	f.health.suspect(rank, cause)
}

// rankOf returns the rank that a queue pair leads to, and whether it is the passive end.
func (f *Fabric) rankOf(b *binding, qp uint32) (rank int, passive, ok bool) {
	f.health.mu.Lock()
	for _, p := range f.health.peers {
		if p.leadsTo(b, qp) {
			f.health.mu.Unlock()
			return p.rank, false, true
		}
	}
	f.health.mu.Unlock()
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for from, in := range f.inbound {
		if in.bind == b && in.qp.Num() == qp {
			return from.from, true, true
		}
	}
	return 0, false, false
}
