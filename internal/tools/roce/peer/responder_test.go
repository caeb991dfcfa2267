//go:build linux

package peer

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

const (
	testKey   = 7
	lastPSN   = wire.PSNMask // so that numbers wrap
	testBytes = 3000
)

func newResponder() *responder {
	return &responder{memory: make([]byte, testBytes), addr: memoryAt, key: testKey, expect: lastPSN}
}

func psnOf(n int) uint32 { return (lastPSN + uint32(n)) & wire.PSNMask }

// write are the packets of a WRITE of all memory.
func write(data []byte) (packets []wire.Packet) {
	for i, op := range []wire.Opcode{wire.WriteFirst, wire.WriteMiddle, wire.WriteLast} {
		p := wire.Packet{Op: op, PSN: psnOf(i), Payload: data[i*mtu : min(len(data), (i+1)*mtu)]}
		if op == wire.WriteFirst {
			p.Addr, p.RKey, p.Length = memoryAt, testKey, uint32(len(data))
		}
		p.AckRequest = op == wire.WriteLast
		packets = append(packets, p)
	}
	return packets
}

func add(n int, addend uint64) wire.Packet {
	return wire.Packet{Op: wire.FetchAdd, PSN: psnOf(n), Addr: memoryAt, RKey: testKey, Swap: addend}
}

func TestResponderAppliesPacketsInOrder(t *testing.T) {
	r, data := newResponder(), bytes.Repeat([]byte("abcdefg"), testBytes/7+1)[:testBytes]
	packets := write(data)
	require.Nil(t, r.receive(&packets[0]))
	require.Equal(t, r.respond(wire.NakSequence, psnOf(1)), r.receive(&packets[2]), "a packet is missing")
	require.Nil(t, r.receive(&packets[2]), "the responder has asked for it")
	require.Nil(t, r.receive(&packets[1]))
	require.Equal(t, []wire.Packet{{Op: wire.Acknowledge, PSN: psnOf(2), Syndrome: wire.Ack, MSN: 1}}, r.receive(&packets[2]))
	require.Equal(t, data, r.memory)
	require.Equal(t, Counts{Writes: 1}, r.counts)
}

func TestResponderRespondsToRepeatedRequestsAndAppliesThemOnce(t *testing.T) {
	r := newResponder()
	first, other := add(0, 5), add(1, 6)
	result := r.receive(&first)
	require.Equal(t, wire.AtomicAcknowledge, result[0].Op)
	r.receive(&other)
	again := r.receive(&first)
	require.Equal(t, result[0].Old, again[0].Old)
	require.Equal(t, uint64(11), binary.NativeEndian.Uint64(r.memory))
	require.Equal(t, Counts{Atomics: 2, Repeated: 1}, r.counts)

	send := wire.Packet{Op: wire.SendOnly, PSN: psnOf(2), AckRequest: true}
	require.Equal(t, psnOf(2), r.receive(&send)[0].PSN)
	require.Equal(t, psnOf(2), r.receive(&send)[0].PSN)
	require.Equal(t, 1, r.counts.Sends)
}

func TestResponderReadsInPackets(t *testing.T) {
	r := newResponder()
	copy(r.memory, "text")
	read := wire.Packet{Op: wire.ReadRequest, PSN: psnOf(0), Addr: memoryAt, RKey: testKey, Length: testBytes}
	for range 2 { // the second request is repeated
		var ops []wire.Opcode
		var got []byte
		for i, p := range r.receive(&read) {
			require.Equal(t, psnOf(i), p.PSN)
			ops, got = append(ops, p.Op), append(got, p.Payload...)
		}
		require.Equal(t, []wire.Opcode{wire.ReadResponseFirst, wire.ReadResponseMid, wire.ReadResponseLast}, ops)
		require.Equal(t, r.memory, got)
	}
	require.Equal(t, psnOf(3), r.expect)
	require.Equal(t, 1, r.counts.Reads)
}

func TestResponderSwapsOnlyEqualWords(t *testing.T) {
	r := newResponder()
	for i, want := range []uint64{9, 9} { // the second one compares with 0
		swap := wire.Packet{Op: wire.CompareSwap, PSN: psnOf(i), Addr: memoryAt, RKey: testKey, Compare: 0, Swap: 9 + uint64(i)}
		r.receive(&swap)
		require.Equal(t, want, binary.NativeEndian.Uint64(r.memory))
	}
}

func TestResponderRefusesForeignMemory(t *testing.T) {
	for name, change := range map[string]func(p *wire.Packet){
		"key":         func(p *wire.Packet) { p.RKey++ },
		"before":      func(p *wire.Packet) { p.Addr -= 8 },
		"behind":      func(p *wire.Packet) { p.Addr += testBytes },
		"end of all":  func(p *wire.Packet) { p.Addr = 1<<64 - 8 },
		"long length": func(p *wire.Packet) { p.Length = testBytes + 1 },
	} {
		for _, op := range []wire.Opcode{wire.WriteOnly, wire.ReadRequest, wire.FetchAdd} {
			if op == wire.FetchAdd && name == "long length" {
				continue // it has none
			}
			r := newResponder()
			p := wire.Packet{Op: op, PSN: psnOf(0), Addr: memoryAt, RKey: testKey, Length: 8}
			change(&p)
			require.Equal(t, r.respond(wire.NakAccess, psnOf(0)), r.receive(&p), name)
			require.Equal(t, newResponder(), r, name)
		}
	}
	r := newResponder()
	p := wire.Packet{Op: wire.WriteOnly, PSN: psnOf(0), Addr: memoryAt, RKey: testKey, Length: 4, Payload: make([]byte, 5)}
	require.Equal(t, wire.NakInvalid, r.receive(&p)[0].Syndrome, "more bytes than the length")
}

func TestConductDropsAndRepeatsResponses(t *testing.T) {
	three := []wire.Packet{{PSN: 1}, {PSN: 2}, {PSN: 3}}
	c := Conduct{}
	require.Equal(t, three, c.send(three))
	c = Conduct{Lose: 2, Repeat: 1}
	require.Equal(t, []wire.Packet{{PSN: 3}, {PSN: 3}}, c.send(three))
	require.Len(t, c.send(three), 6, "the two responses are lost once")
	c = Conduct{Lose: Always}
	for range 3 {
		require.Empty(t, c.send(three))
	}
}

func TestEndpointConduct(t *testing.T) {
	e := newEndpoint(9, make([]byte, testBytes), nil)
	e.Connect(77, lastPSN)
	addr, key := e.Addr()
	request := func(n int) *wire.Packet {
		return &wire.Packet{Op: wire.FetchAdd, PSN: psnOf(n), Addr: addr, RKey: key, Swap: 1}
	}
	e.Behave(Conduct{Silent: true})
	_, out := e.receive(request(0))
	require.Empty(t, out)
	e.Behave(Conduct{Refuse: wire.NakOperation})
	remote, out := e.receive(request(0))
	require.Equal(t, uint32(77), remote)
	require.Equal(t, []wire.Packet{{Op: wire.Acknowledge, PSN: psnOf(0), Syndrome: wire.NakOperation}}, out)
	require.Zero(t, e.Counts().Atomics, "it applied none")
	e.Behave(Conduct{Repeat: 1})
	_, out = e.receive(request(0))
	require.Len(t, out, 2)
	require.Len(t, e.Sent(), 3)
	require.Equal(t, Counts{Requests: 3, Atomics: 1}, e.Counts())

	e.Connect(78, 5)
	require.Equal(t, byte(1), e.Memory()[0], "a connection keeps the memory")
	_, out = e.receive(&wire.Packet{Op: wire.AtomicAcknowledge, Old: 4})
	require.Empty(t, out)
	require.Equal(t, []wire.Packet{{Op: wire.AtomicAcknowledge, Old: 4}}, e.Responses())
	require.NoError(t, e.Await(t.Context(), func(c Counts) bool { return c.Responses == 1 }))
}
