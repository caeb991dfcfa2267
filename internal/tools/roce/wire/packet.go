package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Port is the UDP port of RoCE v2.
const Port = 4791

// Sizes in bytes.
const (
	bthSize  = 12
	icrcSize = 4
)

// PSNMask has the bits of a packet number, of a message number and of a queue pair's
// number.
const PSNMask = 1<<24 - 1

// ErrMalformed is the cause of all errors of decoders.
var ErrMalformed = errors.New("malformed packet")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// A Packet is the UDP payload of RoCE v2 without its ICRC. Fields of headers that the
// opcode does not have are 0.
type Packet struct {
	Op         Opcode
	Solicited  bool
	AckRequest bool
	FECN, BECN bool   // the network's signs of congestion
	PKey       uint16 // partition
	QPN        uint32 // the receiver's queue pair
	PSN        uint32

	Addr   uint64 // RETH, AtomicETH
	RKey   uint32 // RETH, AtomicETH
	Length uint32 // RETH: of the whole message

	Swap    uint64 // AtomicETH: the new value, or the addend
	Compare uint64 // AtomicETH
	Old     uint64 // AtomicAckETH: the value before the atomic

	Syndrome Syndrome // AETH
	MSN      uint32   // AETH: the responder's count of messages
	Imm      uint32   // ImmDt, or the key of IETH

	QKey, SrcQPN uint32 // DETH

	Payload []byte
}

// DefaultPKey is the partition of ports that have no other.
const DefaultPKey = 0xffff

// flags of the BTH.
const (
	bitSolicited = 0x80 // byte 1
	padShift     = 4    // byte 1
	bitFECN      = 0x80 // byte 4
	bitBECN      = 0x40 // byte 4
	bitAck       = 0x80 // byte 8
)

// Decode returns the packet in b, a UDP payload with its ICRC, which Decode does not check.
// Payload refers to b. Errors are ErrMalformed. A packet with an unknown opcode is no
// error: its Payload is all that follows the BTH.
func Decode(b []byte) (Packet, error) {
	if len(b) < bthSize+icrcSize {
		return Packet{}, malformed("%d bytes have no room for a BTH and an ICRC", len(b))
	}
	p := Packet{
		Op: Opcode(b[0]), Solicited: b[1]&bitSolicited != 0, PKey: binary.BigEndian.Uint16(b[2:]),
		FECN: b[4]&bitFECN != 0, BECN: b[4]&bitBECN != 0, QPN: binary.BigEndian.Uint32(b[4:]) & PSNMask,
		AckRequest: b[8]&bitAck != 0, PSN: binary.BigEndian.Uint32(b[8:]) & PSNMask,
	}
	pad, version := int(b[1]>>padShift&3), b[1]&0xf
	rest := b[bthSize : len(b)-icrcSize]
	switch size := p.Op.headers() + pad; {
	case version != 0:
		return Packet{}, malformed("transport version %d", version)
	case len(rest) < size:
		return Packet{}, malformed("%v needs %d bytes behind its BTH and has %d", p.Op, size, len(rest))
	case p.Op.has(only) && !p.Op.has(payload) && len(rest) != size:
		return Packet{}, malformed("%v has %d bytes too many", p.Op, len(rest)-size)
	}
	rest = rest[:len(rest)-pad]
	if rest = p.decodeHeaders(rest); len(rest) > 0 {
		p.Payload = rest
	}
	return p, nil
}

// decodeHeaders returns the bytes behind the headers. Precondition: b has room for them.
func (p *Packet) decodeHeaders(b []byte) []byte {
	u32 := func() (v uint32) { v, b = binary.BigEndian.Uint32(b), b[4:]; return v }
	u64 := func() (v uint64) { v, b = binary.BigEndian.Uint64(b), b[8:]; return v }
	if p.Op.has(deth) {
		p.QKey, p.SrcQPN = u32(), u32()&PSNMask
	}
	if p.Op.has(reth) {
		p.Addr, p.RKey, p.Length = u64(), u32(), u32()
	}
	if p.Op.has(atomicETH) {
		p.Addr, p.RKey, p.Swap, p.Compare = u64(), u32(), u64(), u64()
	}
	if p.Op.has(aeth) {
		v := u32()
		p.Syndrome, p.MSN = Syndrome(v>>24), v&PSNMask
	}
	if p.Op.has(atomicAck) {
		p.Old = u64()
	}
	if p.Op.has(immediate | invalidate) {
		p.Imm = u32()
	}
	if p.Op.has(notice) {
		b = b[16:]
	}
	return b
}

// Append appends p to b, without an ICRC, and returns the longer slice.
func (p *Packet) Append(b []byte) []byte {
	pad := -len(p.Payload) & 3
	b = append(b, byte(p.Op), bit(p.Solicited, bitSolicited)|byte(pad)<<padShift)
	b = binary.BigEndian.AppendUint16(b, p.PKey)
	b = append32(b, bit(p.FECN, bitFECN)|bit(p.BECN, bitBECN), p.QPN)
	b = append32(b, bit(p.AckRequest, bitAck), p.PSN)
	if p.Op.has(deth) {
		b = binary.BigEndian.AppendUint32(b, p.QKey)
		b = append32(b, 0, p.SrcQPN)
	}
	if p.Op.has(reth | atomicETH) {
		b = binary.BigEndian.AppendUint64(b, p.Addr)
		b = binary.BigEndian.AppendUint32(b, p.RKey)
	}
	if p.Op.has(reth) {
		b = binary.BigEndian.AppendUint32(b, p.Length)
	}
	if p.Op.has(atomicETH) {
		b = binary.BigEndian.AppendUint64(b, p.Swap)
		b = binary.BigEndian.AppendUint64(b, p.Compare)
	}
	if p.Op.has(aeth) {
		b = append32(b, byte(p.Syndrome), p.MSN)
	}
	if p.Op.has(atomicAck) {
		b = binary.BigEndian.AppendUint64(b, p.Old)
	}
	if p.Op.has(immediate | invalidate) {
		b = binary.BigEndian.AppendUint32(b, p.Imm)
	}
	if p.Op.has(notice) {
		b = append(b, make([]byte, 16)...)
	}
	return append(append(b, p.Payload...), make([]byte, pad)...)
}

// bit returns b if set, else 0.
func bit(set bool, b byte) byte {
	if set {
		return b
	}
	return 0
}

// append32 appends a byte and a number of 24 bits.
func append32(b []byte, high byte, low uint32) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(high)<<24|low&PSNMask)
}
