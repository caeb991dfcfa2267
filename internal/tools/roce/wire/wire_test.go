package wire

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample returns a packet whose fields are different and not 0 where the opcode has them.
func sample(op Opcode) Packet {
	p := Packet{Op: op, Solicited: true, AckRequest: true, FECN: true, PKey: 0x8001, QPN: 0x123456, PSN: 0xabcdef}
	if op.has(deth) {
		p.QKey, p.SrcQPN = 0x80010000, 0x654321
	}
	if op.has(reth | atomicETH) {
		p.Addr, p.RKey = 0x0123456789abcdef, 0x11223344
	}
	if op.has(reth) {
		p.Length = 99
	}
	if op.has(atomicETH) {
		p.Swap, p.Compare = 5, 6
	}
	if op.has(aeth) {
		p.Syndrome, p.MSN = NakAccess, 0x77
	}
	if op.has(atomicAck) {
		p.Old = 1 << 63
	}
	if op.has(immediate | invalidate) {
		p.Imm = 0xcafe
	}
	if op.has(payload) {
		p.Payload = []byte("seven b")
	}
	return p
}

func frameOf(p Packet) Frame {
	return Frame{SrcMAC: MAC{2, 1}, DstMAC: MAC{2, 2}, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"),
		SrcPort: 50000, ID: 77, Packet: p}
}

func allOpcodes() []Opcode { return slices.Sorted(maps.Keys(opcodes)) }

func TestDecodeReturnsWhatAppendWrote(t *testing.T) {
	for _, op := range allOpcodes() {
		for _, v6 := range []bool{false, true} {
			f := frameOf(sample(op))
			if v6 {
				f.Src, f.Dst, f.ID = netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fe80::2"), 0
			}
			got, err := DecodeFrame(f.Append(nil))
			require.NoError(t, err, op)
			require.True(t, got.Intact(), op)
			f.HopLimit, f.GotICRC, f.WantICRC = hopLimit, got.WantICRC, got.WantICRC
			require.Equal(t, f, got)
		}
	}
}

func TestChecksumOfIPv4IsRight(t *testing.T) {
	f := frameOf(sample(Acknowledge))
	ip := f.Append(nil)[etherSize:][:ipv4Size]
	require.Zero(t, checksum(ip), "the sum over a header with its checksum")
}

func TestDecodeFrameSkipsVLANTagsAndPadding(t *testing.T) {
	f := frameOf(sample(Acknowledge))
	plain := f.Append(nil)
	tagged := slices.Concat(plain[:12], []byte{0x88, 0xa8, 0, 1, 0x81, 0, 0x60, 2}, plain[12:], make([]byte, 9))
	got, err := DecodeFrame(tagged)
	require.NoError(t, err)
	require.True(t, got.Intact())
	require.Equal(t, f.Packet, got.Packet)
}

func TestDecodeFrameRefuses(t *testing.T) {
	f := frameOf(sample(WriteOnly))
	frame := func(change func(b []byte)) []byte {
		b := f.Append(nil)
		change(b)
		return b
	}
	const bth = etherSize + ipv4Size + udpSize
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":                {nil, ErrOther},
		"ARP":                    {frame(func(b []byte) { b[13] = 6 }), ErrOther},
		"TCP":                    {frame(func(b []byte) { b[23] = 6 }), ErrOther},
		"another port":           {frame(func(b []byte) { b[37]++ }), ErrOther},
		"a fragment":             {frame(func(b []byte) { b[21] = 1 }), ErrOther},
		"a long IPv4 packet":     {frame(func(b []byte) { b[16] = 0xff }), ErrOther},
		"a short IPv4 header":    {frame(func(b []byte) { b[14] = 0x44 }), ErrOther},
		"a long UDP length":      {frame(func(b []byte) { b[38] = 0xff }), ErrMalformed},
		"a short UDP length":     {frame(func(b []byte) { b[39] = 7 }), ErrMalformed},
		"no room for a BTH":      {frame(func(b []byte) { b[39] = udpSize + bthSize + icrcSize - 1 }), ErrMalformed},
		"no room for a RETH":     {frame(func(b []byte) { b[39] = udpSize + bthSize + icrcSize + 15 }), ErrMalformed},
		"a version of transport": {frame(func(b []byte) { b[bth+1] |= 1 }), ErrMalformed},
		"an ACK with a payload":  {frame(func(b []byte) { b[bth] = byte(Acknowledge) }), ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeFrame(c.b)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestNamesTellOpcodesAndSyndromesApart(t *testing.T) {
	names := map[string]bool{}
	for _, op := range allOpcodes() {
		names[op.String()] = true
	}
	require.Len(t, names, len(opcodes))
	require.Equal(t, "OPCODE_0xff", Opcode(0xff).String())
	for s, name := range map[Syndrome]string{Ack: "ACK", 0: "ACK", RNR | 12: "RNR NAK, timer 12", NakSequence: "NAK 0x60: PSN sequence error",
		NakInvalid: "NAK 0x61: invalid request", NakAccess: "NAK 0x62: remote access error", NakOperation: "NAK 0x63: remote operational error", 0x65: "syndrome 0x65"} {
		require.Equal(t, name, s.String())
	}
}

// FuzzDecodeFrame checks that each accepted frame of a known opcode encodes to a frame that
// decodes to the same packet.
func FuzzDecodeFrame(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, op := range allOpcodes() {
		frame := frameOf(sample(op))
		f.Add(frame.Append(nil))
		frame.Src, frame.Dst = netip.MustParseAddr("::1"), netip.MustParseAddr("::2")
		b := frame.Append(nil)
		binary.BigEndian.PutUint16(b[r.IntN(len(b)-1):], uint16(r.Uint32()))
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeFrame(b)
		if err != nil || got.Packet.Op.headers() == 0 && !got.Packet.Op.has(payload) {
			return
		}
		again, err := DecodeFrame(got.Append(nil))
		require.NoError(t, err)
		require.True(t, again.Intact())
		require.Equal(t, got.Packet, again.Packet)
	})
}
