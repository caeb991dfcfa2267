package fabric

import "github.com/gopgas/gopgas/verbs/driver"

// refusedBy records that the target refused a request, or that this rank has no
// descriptors left for it.
func (p *Peer) refusedBy(status driver.Status, cause error) {
	e := exhausted(p.f.cfg.Rank, cause)
	if e == nil {
		e = &RankError{Rank: p.rank, Kind: &StatusError{status}, Cause: detail(status, cause)}
	}
	if p.fail.CompareAndSwap(nil, e) {
		p.f.health.refuse(p, e)
	}
}

// refused marks the peer whose queue pair failed although the rank is well.
func (h *health) refused(rank int, status driver.Status, cause error) {
	h.mu.Lock()
	p := h.peers[rank]
	h.mu.Unlock()
	if p != nil {
		p.refusedBy(status, cause)
	}
}

// refuse has goroutines that wait look at [Fabric.Refusal]. It leaves out connections of queues and stripes.
func (h *health) refuse(p *Peer, e *RankError) {
	h.mu.Lock()
	main := h.peers[p.rank] == p
	if main {
		h.refusals[p.rank] = e
		h.refusing.Store(true)
	}
	h.mu.Unlock()
	if main {
		h.f.Poke()
	}
}

// Refusal returns the error by which the first of ranks refused a request of this rank, although it lives. Such a
// rank applies no later request of this rank, such as a flag. Most jobs have no refusal, and do not run ranks.
func (f *Fabric) Refusal(ranks func() []int) error {
	h := &f.health
	if !h.refusing.Load() {
		return nil
	}
	list := ranks()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, rank := range list {
		if e := h.refusals[rank]; e != nil {
			return e
		}
	}
	return nil
}
