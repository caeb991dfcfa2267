package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Ranks of a host that map each other's memory need no message to connect. Each shows the address
// of its device, and where its head block is, in memory that the ranks of the host share:
//
//	target                           origin
//	New: publish the card
//	                                 Peer: read the card, map the memory with bell and head block
//	                                 load and store, as for any mapped peer
//	connect                 <------  the first post: both make a queue pair
//
// Most ranks never post to a peer whose memory they map. If an origin finds no card, or cannot
// reach the device, it connects by a message, as to a rank of another host.

// showCard publishes the card of this rank. Without a card the others connect by messages.
func (f *Fabric) showCard() {
	b := f.regions.list.bind
	if b == nil || !b.passive || f.cfg.Reservations == nil {
		return
	}
	address, ok := b.ctx.Address()
	head := f.regions.find(headRegion)
	if !ok || head == nil || head.mrs[b] == nil {
		return
	}
	card := nearCard{head: head.at(b), length: len(head.mem.Bytes), place: f.besideBell(head), address: address}
	text := card.encode()
	for i, word := range hashOf(cardHash, string(text)) {
		atomics.Word64(f.head.Bytes[headCard+8*i:]).Store(word) // ahead of Publish
	}
	_ = f.cfg.Reservations.Publish(f.cfg.Rank, text)
}

// cardHash begins what the hash of a card is made of.
const cardHash = "card"

// isHeadOf reports whether mem is the head block of the rank with a card: it has the hash of the card. So it is no
// memory of another process that has the number of that one by now.
func isHeadOf(mem, card []byte) bool {
	if len(mem) < headSize {
		return false
	}
	for i, word := range hashOf(cardHash, string(card)) {
		if atomics.Word64(mem[headCard+8*i:]).Load() != word {
			return false
		}
	}
	return true
}

// A nearCard tells ranks of the same host how to map a rank's memory. It is little-endian:
//
//	0  address of the head block   8  its key, 16 bytes   24  its length   32  its place beside the bell
//	40  address of the device
type nearCard struct {
	head    driver.RemoteAddr
	length  int
	place   uint64
	address []byte
}

const nearCardHead = 40

// besideBell returns the place of a region in the memory in which the bell of this rank lies, 0 if it
// lies elsewhere. It is the offset + 1. Neighbors map that memory with the bell, and so use no key for the region.
func (f *Fabric) besideBell(r *Region) uint64 {
	if fd, _, ok := f.bell.Location(); !ok || r.mem.Kind != driver.KindMemfd || r.mem.FD != fd {
		return 0
	}
	return uint64(r.mem.Offset) + 1
}

// besideBell returns n bytes at a place in the memory in which a neighbor's bell lies, nil if there are none or they do
// not begin at a word.
func besideBell(near *verbs.Neighbor, place uint64, n int) []byte {
	mem := near.BellMemory()
	at := place - 1 // no place wraps around
	if size := uint64(len(mem)); n < 0 || at%8 != 0 || at >= size || uint64(n) > size-at {
		return nil
	}
	return mem[at:][:n:n]
}

// encode returns the card as decodeNearCard reads it.
func (c *nearCard) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint64(nil, c.head.Addr)
	b = le.AppendUint64(b, c.head.RKey.Hi)
	b = le.AppendUint64(b, c.head.RKey.Lo)
	b = le.AppendUint64(b, uint64(c.length))
	b = le.AppendUint64(b, c.place)
	return append(b, c.address...)
}

// decodeNearCard returns false for bytes that are no card. The device checks the content of a
// card.
func decodeNearCard(b []byte) (c nearCard, ok bool) {
	le := binary.LittleEndian
	if len(b) <= nearCardHead || le.Uint64(b[24:]) > math.MaxInt {
		return nearCard{}, false
	}
	if place := le.Uint64(b[32:]); place != 0 && place%8 != 1 { // a place is a word's
		return nearCard{}, false
	}
	return nearCard{head: driver.RemoteAddr{Addr: le.Uint64(b), RKey: driver.Key{Hi: le.Uint64(b[8:]), Lo: le.Uint64(b[16:])}},
		length: int(le.Uint64(b[24:])), place: le.Uint64(b[32:]), address: b[nearCardHead:]}, true
}

// connectNear connects to a rank by its card. It returns nil and no error if a message has to
// connect the two, which also tells the reason. It does not wait.
func (f *Fabric) connectNear(rank int) (*Peer, error) {
	b := f.regions.list.bind
	if ways := f.waysTo(rank); !f.Mapping() || b == nil || !b.passive || rank == f.cfg.Rank || len(ways) == 0 || ways[0] != b {
		return nil, nil
	}
	text := f.cfg.Reservations.Card(rank)
	card, ok := decodeNearCard(text)
	if !ok {
		return nil, nil
	}
	near, err := b.ctx.Neighbor(f.ctx, card.address)
	if err == nil {
		mem := besideBell(near, card.place, card.length)
		if !isHeadOf(mem, text) {
			mem, err = near.Map(f.ctx, card.head, card.length, driver.AllAccess)
		}
		if err == nil {
			p := &Peer{f: f, rank: rank, bind: b, near: near, bell: near.Bell()}
			p.head = &Remote{Peer: p, Len: len(mem), Mem: mem, addr: card.head}
			return p, nil
		}
	}
	if mine := exhausted(f.cfg.Rank, err); mine != nil {
		return nil, mine
	}
	return nil, nil
}

// ConnectNear connects to those of ranks that it reaches without a message. It waits for none. The first use of
// another one connects to that, and returns the error if there is one.
func (f *Fabric) ConnectNear(ranks []int) {
	if f.begin() != nil {
		return
	}
	defer f.making.Done()
	for _, rank := range f.unconnected(ranks) {
		if f.health.of(rank) != nil {
			continue
		}
		p, _ := f.connectNear(rank)
		if p == nil {
			continue
		}
		d, made, err := f.newDial(rank, "", false)
		if err != nil {
			return
		}
		if made { // else another goroutine was first
			d.peer = p
			f.health.watch(p)
			f.endDial(rank, d)
		}
	}
}

// unconnected returns those of ranks to which this one has neither connected nor begun to connect.
func (f *Fabric) unconnected(ranks []int) (list []int) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for _, rank := range ranks {
		if f.peers[rank] == nil {
			list = append(list, rank)
		}
	}
	return list
}

// connectedTo returns the peer of a rank to which this one has connected, nil if there is none.
func (f *Fabric) connectedTo(rank int) *Peer {
	f.peersMu.Lock()
	d := f.peers[rank]
	f.peersMu.Unlock()
	if d == nil || !d.connected() {
		return nil
	}
	return d.peer
}

// mapped returns the peer's memory of a reply, for loads and stores.
func (p *Peer) mapped(ctx context.Context, rep regionReply) ([]byte, error) {
	if p.near != nil {
		if mem := besideBell(p.near, rep.place, rep.Length); mem != nil {
			return mem, nil
		}
		return p.near.Map(ctx, rep.Addr, rep.Length, driver.AllAccess)
	}
	return p.qp.Load().Map(ctx, rep.Addr, rep.Length, driver.AllAccess)
}

// An opening is an attempt to make a queue pair for a peer.
type opening struct {
	over atomic.Bool
	err  error // that only its callers get: a shortage
}

// retryOpen is the longest pause between two attempts that composers cause.
const retryOpen = time.Second

// open returns once p has a queue pair, or is lost, or an attempt found no memory or descriptors. One
// goroutine of the fabric makes the queue pair for all callers, and goes on if ctx ends. Under NoWait
// open returns ErrNoRoom meanwhile, and for a pause behind a shortage. A composer in line gets no
// shortage as its error, and the end of each attempt has it try again.
func (p *Peer) open(ctx context.Context) error {
	if p.qp.Load() != nil {
		return nil
	}
	hasty := p.f.hasty(ctx)
	o, err := p.startQP(hasty)
	if err != nil {
		return err
	}
	if err := p.f.Wait(ctx, o.over.Load); err != nil {
		return err
	}
	switch {
	case o.err == nil:
		return p.Err()
	case hasty: // the attempt ended ahead of the look at over
		return ErrNoRoom
	}
	return o.err
}

// startQP has a goroutine make the queue pair, unless one does. A hasty caller gets ErrNoRoom in the
// pause behind a shortage.
func (p *Peer) startQP(hasty bool) (*opening, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.making != nil:
		return p.making, nil
	case hasty && time.Now().Before(p.retryAt):
		return nil, ErrNoRoom
	case p.f.begin() != nil:
		return nil, ErrClosed
	}
	o := &opening{}
	p.making = o
	go func() {
		defer p.f.making.Done()
		if o.err = p.makeQP(p.f.ctx); o.err != nil {
			p.mu.Lock()
			p.making = nil // the next post tries again
			p.retryAt = time.Now().Add(p.retry.Next(retryOpen))
			p.mu.Unlock()
		}
		o.over.Store(true)
		p.f.bell.Ring()
	}()
	return o, nil
}

// makeQP makes the queue pair of a peer that has none. It returns a shortage. After another failure the
// peer is lost.
func (p *Peer) makeQP(ctx context.Context) error {
	err := p.connectQP(ctx, connectRequest{}, func(*connectReply) error { return nil })
	if errors.Is(err, driver.ErrLost) {
		err = p.f.blame(ctx, p.rank, err)
	}
	gone := p.fail.Load() // set before p had a queue pair
	var known *RankError
	switch {
	case err == nil && gone == nil:
		return nil
	case errors.As(err, &known) && errors.Is(known, driver.ErrExhausted): // at the other rank
		return known
	case errors.As(err, &known):
		gone = known
	case errors.Is(err, driver.ErrExhausted):
		return exhausted(p.f.cfg.Rank, err)
	case err != nil && ctx.Err() != nil:
		return ErrClosed
	case err != nil:
		gone = &RankError{Rank: p.rank, Kind: ErrUnreachable, Cause: "connect over " + p.bind.name + ": " + err.Error()}
	}
	p.lose(gone)
	return nil
}
