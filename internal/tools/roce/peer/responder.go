//go:build linux

package peer

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

// mtu is the size in bytes of the payload of a packet that is not the last of its message.
const mtu = 1024

// replays is the number of atomics whose results a responder keeps for repeated requests.
const replays = 16

// responder is the receiving half of a reliable connection.
type responder struct {
	memory  []byte
	addr    uint64 // of memory, as requests name it
	key     uint32
	expect  uint32 // the PSN of the next request packet
	msn     uint32
	missing bool   // the responder has sent a NAK for expect, which did not come yet
	rest    []byte // memory for the rest of a WRITE
	counts  Counts
	atomics [replays]struct {
		psn   uint32
		old   uint64
		valid bool
	}
}

// ahead returns how many packets psn is behind at in the order of sending, between
// -2^23 and 2^23-1.
func ahead(at, psn uint32) int { return int(int32((psn-at)<<8) >> 8) }

// receive applies a request packet, and returns the responses.
func (r *responder) receive(p *wire.Packet) []wire.Packet {
	switch d := ahead(r.expect, p.PSN); {
	case d < 0:
		r.counts.Repeated++
		return r.again(p)
	case d > 0:
		if r.missing {
			return nil
		}
		r.missing = true
		return r.respond(wire.NakSequence, r.expect)
	}
	r.missing = false
	return r.apply(p)
}

// respond returns one packet with a syndrome.
func (r *responder) respond(s wire.Syndrome, psn uint32) []wire.Packet {
	return []wire.Packet{{Op: wire.Acknowledge, PSN: psn, Syndrome: s, MSN: r.msn}}
}

// again responds to a request that the responder has applied before.
func (r *responder) again(p *wire.Packet) []wire.Packet {
	switch p.Op {
	case wire.ReadRequest:
		if mem, ok := r.locate(p, uint64(p.Length)); ok {
			return r.read(mem, p.PSN)
		}
		return nil
	case wire.FetchAdd, wire.CompareSwap:
		for _, a := range r.atomics {
			if a.valid && a.psn == p.PSN {
				return r.result(a.psn, a.old)
			}
		}
		return nil
	}
	return r.respond(wire.Ack, (r.expect-1)&wire.PSNMask)
}

// apply applies the request packet that is next in order.
func (r *responder) apply(p *wire.Packet) []wire.Packet {
	switch p.Op {
	case wire.ReadRequest:
		mem, ok := r.locate(p, uint64(p.Length))
		if !ok {
			return r.respond(wire.NakAccess, p.PSN)
		}
		r.counts.Reads++
		r.msn++
		r.advance(max(1, (len(mem)+mtu-1)/mtu))
		return r.read(mem, p.PSN)
	case wire.FetchAdd, wire.CompareSwap:
		return r.atomic(p)
	}
	write := p.Op >= wire.WriteFirst && p.Op <= wire.WriteOnlyImm
	if write {
		if refused := r.write(p); refused != 0 {
			return r.respond(refused, p.PSN)
		}
	}
	r.advance(1)
	switch {
	case !p.Op.IsLast():
	case write:
		r.msn++
		r.counts.Writes++
	default: // the bytes of a SEND go nowhere
		r.msn++
		r.counts.Sends++
	}
	if !p.AckRequest {
		return nil
	}
	return r.respond(wire.Ack, p.PSN)
}

// write copies the payload of a WRITE's packet, or returns a syndrome.
func (r *responder) write(p *wire.Packet) (refused wire.Syndrome) {
	if p.Op.IsFirst() {
		mem, ok := r.locate(p, uint64(p.Length))
		if !ok {
			return wire.NakAccess
		}
		r.rest = mem
	}
	if len(p.Payload) > len(r.rest) {
		return wire.NakInvalid
	}
	r.rest = r.rest[copy(r.rest, p.Payload):]
	return 0
}

func (r *responder) advance(packets int) { r.expect = (r.expect + uint32(packets)) & wire.PSNMask }

// atomic applies an atomic and keeps its result: a repeated request gets it again and is not
// applied twice.
func (r *responder) atomic(p *wire.Packet) []wire.Packet {
	mem, ok := r.locate(p, 8)
	if !ok || p.Addr%8 != 0 {
		return r.respond(wire.NakAccess, p.PSN)
	}
	old := binary.NativeEndian.Uint64(mem)
	switch {
	case p.Op == wire.FetchAdd:
		binary.NativeEndian.PutUint64(mem, old+p.Swap)
	case old == p.Compare:
		binary.NativeEndian.PutUint64(mem, p.Swap)
	}
	kept := &r.atomics[r.counts.Atomics%replays]
	kept.psn, kept.old, kept.valid = p.PSN, old, true
	r.counts.Atomics++
	r.msn++
	r.advance(1)
	return r.result(p.PSN, old)
}

func (r *responder) result(psn uint32, old uint64) []wire.Packet {
	return []wire.Packet{{Op: wire.AtomicAcknowledge, PSN: psn, Syndrome: wire.Ack, MSN: r.msn, Old: old}}
}

// read returns the packets with mem.
func (r *responder) read(mem []byte, psn uint32) (out []wire.Packet) {
	for first := true; first || len(mem) > 0; first = false {
		n := min(len(mem), mtu)
		p := wire.Packet{Op: wire.ReadResponseMid, PSN: psn, Payload: append([]byte(nil), mem[:n]...)}
		mem = mem[n:]
		switch last := len(mem) == 0; {
		case first && last:
			p.Op = wire.ReadResponseOnly
		case first:
			p.Op = wire.ReadResponseFirst
		case last:
			p.Op = wire.ReadResponseLast
		}
		if p.Op.HasAETH() {
			p.Syndrome, p.MSN = wire.Ack, r.msn
		}
		out = append(out, p)
		psn = (psn + 1) & wire.PSNMask
	}
	return out
}

// locate returns the n bytes that a request names.
func (r *responder) locate(p *wire.Packet, n uint64) ([]byte, bool) {
	at, size := p.Addr-r.addr, uint64(len(r.memory))
	if p.RKey != r.key || p.Addr < r.addr || at > size || n > size-at {
		return nil, n == 0 // a request of no bytes needs neither address nor key
	}
	return r.memory[at:][:n], true
}
