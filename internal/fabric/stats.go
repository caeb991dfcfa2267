package fabric

import (
	"slices"
	"sync/atomic"
)

// Counters count a rank's operations on one peer, but for short puts.
type Counters struct {
	ops, bytes atomic.Uint64
	staged     atomic.Uint64 // bytes of writes and reads that this rank copied on their way
	sends      atomic.Uint64 // two-sided work requests: the layers above need none
	stalls     atomic.Uint64 // waits for room in the send queue
	retries    atomic.Uint64 // rounds that an emulated atomic lost to another update
}

// count counts one operation on some bytes.
func (c *Counters) count(bytes int) {
	c.ops.Add(1)
	c.bytes.Add(uint64(bytes))
}

// Count adds one operation on mapped memory. It costs more than the operation, so callers
// skip it unless the job counts such operations.
func (c *Counters) Count(bytes int) { c.count(bytes) }

// PeerStats holds the counters of one peer; see the alias in package runtime.
type PeerStats struct {
	Peer     int
	Provider string
	Ops      uint64
	Bytes    uint64
	Staged   uint64
	Sends    uint64
	Stalls   uint64
	Retries  uint64
}

// PeerStats returns the counters of every peer that this rank is connected to,
// by rank.
func (f *Fabric) PeerStats() []PeerStats {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	var out []PeerStats
	for rank, d := range f.peers {
		select {
		case <-d.done:
		default:
			continue
		}
		if d.err == nil {
			out = append(out, d.peer.stats(rank))
		}
	}
	slices.SortFunc(out, func(a, b PeerStats) int { return a.Peer - b.Peer })
	return out
}

// stats adds the counts of p and of its further queues.
func (p *Peer) stats(rank int) PeerStats {
	p.mu.Lock()
	c := p.short.count
	p.mu.Unlock()
	s := PeerStats{Peer: rank, Provider: p.Provider(), Ops: p.Stats.ops.Load() + c.ops, Bytes: p.Stats.bytes.Load() + c.bytes, Staged: p.Stats.staged.Load() + c.staged,
		Sends: p.Stats.sends.Load(), Stalls: p.Stats.stalls.Load(), Retries: p.Stats.retries.Load()}
	for _, q := range p.stripes.ofQueues() {
		more := q.stats(rank)
		s.Ops, s.Bytes, s.Staged, s.Sends = s.Ops+more.Ops, s.Bytes+more.Bytes, s.Staged+more.Staged, s.Sends+more.Sends
		s.Stalls, s.Retries = s.Stalls+more.Stalls, s.Retries+more.Retries
	}
	return s
}

// Steps counts waits that ended well, requests that completed and operations that began.
// The count stands still while the rank waits in vain: a test's watchdog looks for that.
// Steps does not count reads and writes of mapped memory.
func (f *Fabric) Steps() uint64 {
	n := f.bell.Ended()
	for _, b := range f.bindings {
		n += b.completed.Load()
	}
	for _, s := range f.PeerStats() {
		n += s.Ops
	}
	return n
}
