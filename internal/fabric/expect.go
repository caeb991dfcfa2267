package fabric

import "time"

// Two ranks that both post to each other have a connection for each direction (ADR 3). Where both know that they need
// the two, one request through the launcher makes them (ADR 114):
//
//	lower rank                                  higher rank
//	a queue pair for its posts,                 expects the request: its dial waits
//	a passive end for those of the other one
//	connect: both addresses          ------>    a passive end, a queue pair for its posts
//	connects both                    <------    both addresses
//	                    the device: established
//	                                            its dial ends
//
// The higher rank posts only once its device says that the passive end at the other rank is connected: that rank may
// fail in between. A rank that waits too long sends a request of its own. Then each of the two makes its own connection,
// as without all this, and declines what the other one offers.

// defaultExpect is long against a request on a busy machine. As a rule, a rank that waits for it in vain waits for the
// program of the other one anyway.
const defaultExpect = 100 * time.Millisecond

// acceptFactor is the time for which a rank waits until the end that it accepted is established, in Expects.
const acceptFactor = 10

// A turn says by whose request a dial connects.
type turn uint8

const (
	dialing   turn = iota // by that of this rank, or the dial has ended
	expecting             // by that of the other rank, which has not come
	accepting             // by that of the other rank, whose passive end is not known to be connected
)

// An expectation is the part of a dial that a request of the other rank changes. The fabric's peersMu guards it, until a
// goroutine connects for this rank.
type expectation struct {
	turn   turn
	mutual bool   // the other rank connects to this one as well
	region string // for which this rank connects
	timer  *time.Timer
	back   *Peer // while accepting: what the dial brings once its queue pair is established
	alone  bool  // the other rank has dropped what it made for an offer of this dial
}

// mayExpect reports whether one request may connect this rank and another one both ways. If that rank has connected
// already, it sends no further request. The caller holds peersMu.
func (f *Fabric) mayExpect(rank int) bool {
	return rank != f.cfg.Rank && f.mutualWay(rank) != nil && f.inbound[inboundKey{rank, 0}] == nil
}

// mutualWay returns the first way to a rank, if it tells when the other end is connected. Ranks that map memory connect
// without a message.
func (f *Fabric) mutualWay(rank int) *binding {
	ways := f.waysTo(rank)
	if len(ways) == 0 || !ways[0].info.Establishes || ways[0].info.Memory.Maps && f.Mapping() {
		return nil
	}
	return ways[0]
}

// wait has d wait for the other rank, a number of times as long as Config.Expect says. The caller holds peersMu.
func (d *dial) wait(f *Fabric, rank int, turn turn, times int) {
	d.turn = turn
	expect := f.cfg.Expect
	if expect == 0 {
		expect = defaultExpect
	}
	d.timer = time.AfterFunc(time.Duration(times)*expect, func() {
		f.peersMu.Lock()
		defer f.peersMu.Unlock()
		f.connectAlone(rank, d)
	})
}

// connectAlone has this rank connect by a request of its own, if d waits for the other one. The caller holds peersMu.
func (f *Fabric) connectAlone(rank int, d *dial) {
	if d.turn != dialing {
		go f.attempt(rank, d, d.waitNoMore())
	}
}

// waitNoMore ends the wait for the other rank, and returns the peer that may not be established. The caller holds
// peersMu, and ends the dial.
func (d *dial) waitNoMore() (back *Peer) {
	d.timer.Stop()
	back, d.back, d.turn = d.back, nil, dialing
	return back
}

// expectNothing has this rank connect by requests of its own to those of its ranks that match.
func (f *Fabric) expectNothing(matches func(rank int) bool) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for rank, d := range f.peers {
		if matches(rank) {
			f.connectAlone(rank, d)
		}
	}
}
