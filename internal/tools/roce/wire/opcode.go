package wire

import "fmt"

// An Opcode is the first byte of a BTH: the transport service and the operation.
type Opcode uint8

// Opcodes of reliable connections, of datagrams, and of congestion notifications.
const (
	SendFirst         Opcode = 0x00
	SendMiddle        Opcode = 0x01
	SendLast          Opcode = 0x02
	SendLastImm       Opcode = 0x03
	SendOnly          Opcode = 0x04
	SendOnlyImm       Opcode = 0x05
	WriteFirst        Opcode = 0x06
	WriteMiddle       Opcode = 0x07
	WriteLast         Opcode = 0x08
	WriteLastImm      Opcode = 0x09
	WriteOnly         Opcode = 0x0a
	WriteOnlyImm      Opcode = 0x0b
	ReadRequest       Opcode = 0x0c
	ReadResponseFirst Opcode = 0x0d
	ReadResponseMid   Opcode = 0x0e
	ReadResponseLast  Opcode = 0x0f
	ReadResponseOnly  Opcode = 0x10
	Acknowledge       Opcode = 0x11
	AtomicAcknowledge Opcode = 0x12
	CompareSwap       Opcode = 0x13
	FetchAdd          Opcode = 0x14
	SendLastInv       Opcode = 0x16
	SendOnlyInv       Opcode = 0x17
	DatagramOnly      Opcode = 0x64
	DatagramOnlyImm   Opcode = 0x65
	Congestion        Opcode = 0x81
)

// traits are the headers behind the BTH, in the order of the packet. They have the packet's
// role in its message, too.
type traits uint16

const (
	deth       traits = 1 << iota // 8 bytes: Q_Key, source queue pair
	reth                          // 16 bytes: address, key, length
	atomicETH                     // 28 bytes: address, key, swap or add, compare
	aeth                          // 4 bytes: syndrome, message number
	atomicAck                     // 8 bytes: the value before the atomic
	immediate                     // 4 bytes
	invalidate                    // 4 bytes: the key that the receiver invalidates
	notice                        // 16 bytes that a congestion notification reserves
	payload                       // data follow
	first                         // packet of its message
	last                          // packet of its message
	response                      // of the responder
)

const only = first | last

var opcodes = map[Opcode]struct {
	name string
	traits
}{
	SendFirst:         {"SEND_FIRST", payload | first},
	SendMiddle:        {"SEND_MIDDLE", payload},
	SendLast:          {"SEND_LAST", payload | last},
	SendLastImm:       {"SEND_LAST_IMM", payload | last | immediate},
	SendOnly:          {"SEND_ONLY", payload | only},
	SendOnlyImm:       {"SEND_ONLY_IMM", payload | only | immediate},
	WriteFirst:        {"WRITE_FIRST", payload | first | reth},
	WriteMiddle:       {"WRITE_MIDDLE", payload},
	WriteLast:         {"WRITE_LAST", payload | last},
	WriteLastImm:      {"WRITE_LAST_IMM", payload | last | immediate},
	WriteOnly:         {"WRITE_ONLY", payload | only | reth},
	WriteOnlyImm:      {"WRITE_ONLY_IMM", payload | only | reth | immediate},
	ReadRequest:       {"READ_REQUEST", only | reth},
	ReadResponseFirst: {"READ_RESPONSE_FIRST", payload | first | response | aeth},
	ReadResponseMid:   {"READ_RESPONSE_MIDDLE", payload | response},
	ReadResponseLast:  {"READ_RESPONSE_LAST", payload | last | response | aeth},
	ReadResponseOnly:  {"READ_RESPONSE_ONLY", payload | only | response | aeth},
	Acknowledge:       {"ACK", only | response | aeth},
	AtomicAcknowledge: {"ATOMIC_ACK", only | response | aeth | atomicAck},
	CompareSwap:       {"CMP_SWAP", only | atomicETH},
	FetchAdd:          {"FETCH_ADD", only | atomicETH},
	SendLastInv:       {"SEND_LAST_INV", payload | last | invalidate},
	SendOnlyInv:       {"SEND_ONLY_INV", payload | only | invalidate},
	DatagramOnly:      {"UD_SEND_ONLY", payload | only | deth},
	DatagramOnlyImm:   {"UD_SEND_ONLY_IMM", payload | only | deth | immediate},
	Congestion:        {"CNP", only | notice},
}

// String returns the name of the operation, or the number of an opcode that [Packet] does
// not know.
func (o Opcode) String() string {
	if known, ok := opcodes[o]; ok {
		return known.name
	}
	return fmt.Sprintf("OPCODE_%#02x", uint8(o))
}

func (o Opcode) has(t traits) bool { return opcodes[o].traits&t != 0 }

// IsRequest reports whether a requester sends packets with o to a responder.
func (o Opcode) IsRequest() bool { _, ok := opcodes[o]; return ok && !o.has(response|notice|deth) }

// IsFirst reports whether o begins a message.
func (o Opcode) IsFirst() bool { return o.has(first) }

// IsLast reports whether o ends a message.
func (o Opcode) IsLast() bool { return o.has(last) }

// HasAETH reports whether packets with o have a syndrome and a message number.
func (o Opcode) HasAETH() bool { return o.has(aeth) }

// headers returns the bytes of all headers behind the BTH.
func (o Opcode) headers() (n int) {
	for i, size := range [...]int{8, 16, 28, 4, 8, 4, 4, 16} {
		if o.has(1 << i) {
			n += size
		}
	}
	return n
}

// A Syndrome is the first byte of an AETH.
type Syndrome uint8

// Syndromes of an AETH. The lower 5 bits of an ACK are credits. Those of an RNR NAK
// are the code of the time that the requester waits.
const (
	Ack             Syndrome = 0x1f // without credits
	RNR             Syndrome = 0x20
	NakSequence     Syndrome = 0x60
	NakInvalid      Syndrome = 0x61
	NakAccess       Syndrome = 0x62
	NakOperation    Syndrome = 0x63
	kindOfSyndrome  Syndrome = 0x60
	valueOfSyndrome Syndrome = 0x1f
)

// IsAck reports whether s acknowledges.
func (s Syndrome) IsAck() bool { return s&kindOfSyndrome == 0 }

// String returns the meaning of the syndrome, as the InfiniBand specification names it.
func (s Syndrome) String() string {
	switch {
	case s.IsAck():
		return "ACK"
	case s&kindOfSyndrome == RNR:
		return fmt.Sprintf("RNR NAK, timer %d", s&valueOfSyndrome)
	}
	switch s {
	case NakSequence:
		return "NAK 0x60: PSN sequence error"
	case NakInvalid:
		return "NAK 0x61: invalid request"
	case NakAccess:
		return "NAK 0x62: remote access error"
	case NakOperation:
		return "NAK 0x63: remote operational error"
	}
	return fmt.Sprintf("syndrome %#02x", uint8(s))
}
