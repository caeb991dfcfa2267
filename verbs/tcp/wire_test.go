//go:build linux

package tcp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

// drawFrame draws a frame that may travel, with the fields of its kind only.
func drawFrame(t *rapid.T) frame {
	f := frame{kind: kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind"))}
	f.flags = rapid.Uint8Range(0, flagLast|flagWantAck|flagReply).Draw(t, "flags")
	f.stream = rapid.Uint32().Draw(t, "stream")
	if f.kind <= kindSend || f.kind == kindData {
		f.length = rapid.Uint32Range(0, maxPayload).Draw(t, "length")
	}
	f.bodySize = int(f.length)
	u64 := rapid.Uint64()
	switch f.kind {
	case kindWrite, kindWriteImm, kindRead, kindAtomic, kindAccumulate, kindWriteBlocks, kindReadBlocks:
		f.addr, f.key = u64.Draw(t, "addr"), driver.Key{Hi: u64.Draw(t, "hi"), Lo: u64.Draw(t, "lo")}
	case kindAck:
		f.seq, f.credits = u64.Draw(t, "seq"), u64.Draw(t, "credits")
	case kindNak:
		f.seq, f.op = u64.Draw(t, "seq"), rapid.Uint8().Draw(t, "status")
	case kindValue:
		f.value = u64.Draw(t, "value")
	}
	switch f.kind {
	case kindRead:
		f.length = rapid.Uint32Range(0, maxMessage).Draw(t, "size")
	case kindWriteImm:
		f.imm = rapid.Uint32().Draw(t, "imm")
	case kindAtomic:
		f.operand, f.compare = u64.Draw(t, "operand"), u64.Draw(t, "compare")
		f.op, f.width = rapid.Uint8().Draw(t, "op"), rapid.Uint8().Draw(t, "width")
	case kindAccumulate:
		f.op, f.width = rapid.Uint8().Draw(t, "op"), rapid.Uint8().Draw(t, "width")
		f.runs = rapid.Uint32Range(0, driver.MaxBlocks/driver.RunSize-1).Draw(t, "runs")
		f.bytes = rapid.Uint32Range(0, driver.MaxAccumulate-f.runs*driver.RunSize).Draw(t, "bytes")
		if f.length = f.runs*driver.RunSize + f.bytes; driver.AtomicOp(f.op) == driver.AtomicLoad {
			f.length = f.runs * driver.RunSize
		}
		f.bodySize = int(f.length)
	case kindWriteBlocks, kindReadBlocks:
		f.runs = rapid.Uint32Range(1, driver.MaxBlocks/driver.RunSize-1).Draw(t, "runs")
		f.bytes = rapid.Uint32Range(1, driver.MaxBlocks-f.runs*driver.RunSize).Draw(t, "bytes")
		if f.length = f.runs * driver.RunSize; f.kind == kindWriteBlocks {
			f.length += f.bytes
		}
		f.bodySize = int(f.length)
	}
	return f
}

func TestFramesSurviveEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFrame(t)
		b := make([]byte, headerSizes[want.kind])
		want.encode(b)
		var got frame
		for short := range b {
			n, err := got.decode(b[:short])
			if n != 0 || err != nil {
				t.Fatalf("%d of %d bytes gave %d, %v", short, len(b), n, err)
			}
		}
		got = frame{}
		n, err := got.decode(append(b, 0xee))
		if err != nil || n != len(b) || got != want {
			t.Fatalf("got %d, %v, %+v, want %+v", n, err, got, want)
		}
	})
}

func TestDecodeRefusesInvalidFrames(t *testing.T) {
	for name, b := range map[string][]byte{
		"kind 0":        make([]byte, maxHeader),
		"unknown kind":  append([]byte{byte(kinds)}, make([]byte, maxHeader)...),
		"long payload":  append([]byte{byte(kindSend), 1, 0, 16}, make([]byte, maxHeader)...),
		"ACK with body": append([]byte{byte(kindAck), 1, 0, 0}, make([]byte, maxHeader)...),
		"END with body": append([]byte{byte(kindEnd), 0, 0, 1}, make([]byte, maxHeader)...),
		"huge READ":     append(append([]byte{byte(kindRead)}, make([]byte, offSize-1)...), 1, 0, 0, 0x40),

		"ACCUMULATE with too few operands":  accumulateHeader(8, driver.AtomicAdd, 0, 16),
		"ACCUMULATE without operands":       accumulateHeader(0, driver.AtomicAdd, 0, 16),
		"ACCUMULATE of operands and a load": accumulateHeader(16, driver.AtomicLoad, 0, 16),
		"huge ACCUMULATE":                   accumulateHeader(0, driver.AtomicLoad, 0, driver.MaxAccumulate+8),
		"ACCUMULATE without its runs":       accumulateHeader(16, driver.AtomicAdd, 1, 16),
		"ACCUMULATE of too many runs":       accumulateHeader(65520, driver.AtomicAdd, 2730, 24),

		"WRITE_BLOCKS with too few bytes": blocksHeader(kindWriteBlocks, 24, 1, 8),
		"WRITE_BLOCKS without a run":      blocksHeader(kindWriteBlocks, 8, 0, 8),
		"READ_BLOCKS with bytes":          blocksHeader(kindReadBlocks, 32, 1, 8),
		"READ_BLOCKS of nothing":          blocksHeader(kindReadBlocks, 24, 1, 0),
		"huge READ_BLOCKS":                blocksHeader(kindReadBlocks, 24, 1, driver.MaxBlocks),
		"READ_BLOCKS of too many runs":    blocksHeader(kindReadBlocks, 16, 1<<29+1<<27, 8),
	} {
		var f frame
		_, err := f.decode(b)
		require.ErrorIs(t, err, errProtocol, name)
	}
}

// accumulateHeader encodes the header of an ACCUMULATE without a check.
func accumulateHeader(length uint32, op driver.AtomicOp, runs, bytes uint32) []byte {
	b := make([]byte, maxHeader)
	(&frame{kind: kindAccumulate, length: length, op: uint8(op), width: 8, runs: runs, bytes: bytes}).encode(b)
	return b
}

// blocksHeader encodes the header of a WRITE_BLOCKS or READ_BLOCKS without a check.
func blocksHeader(k kind, length, runs, bytes uint32) []byte {
	b := make([]byte, maxHeader)
	(&frame{kind: k, length: length, runs: runs, bytes: bytes}).encode(b)
	return b
}

func FuzzFrames(f *testing.F) {
	for k := kindWrite; k < kinds; k++ {
		b := make([]byte, headerSizes[k])
		(&frame{kind: k, flags: flagLast, seq: 3, addr: 9}).encode(b)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var got frame
		n, err := got.decode(b)
		if n == 0 || err != nil {
			return
		}
		again := make([]byte, n)
		got.encode(again)
		var twice frame
		if m, err := twice.decode(again); m != n || err != nil || twice != got {
			t.Fatalf("%+v became %+v, %v", got, twice, err)
		}
	})
}

func TestAddressSurvivesEncoding(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(1)
	a, err := decodeAddress(q.Address())
	require.NoError(t, err)
	require.Equal(t, address{qp: q.num, token: q.secret, device: n.id, endpoints: n.endpoints}, a)
}

func TestEveryResetMakesAFreshSecret(t *testing.T) {
	q := newNode(t, 8, 0).newQP(1)
	before := q.Address()
	require.NoError(t, q.Modify(t.Context(), driver.StateReset, driver.Attr{}))
	require.NotEqual(t, before, q.Address())
}

func FuzzAddress(f *testing.F) {
	a := address{qp: 7, endpoints: addrPorts("127.0.0.1:9", "[::1]:10")}
	f.Add(a.encode())
	f.Add([]byte("PGTQ"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAddress(b)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrInvalid)
			return
		}
		if !bytes.Equal(a.encode(), b) {
			t.Fatalf("%x became %x", b, a.encode())
		}
	})
}

// FuzzConnection feeds a connected queue pair any bytes of a peer, in two reads. The
// queue pair must not panic or change a byte outside the registered memory.
func FuzzConnection(f *testing.F) {
	const guard = 64
	node := newNode(f, 8, 0)
	mem := alignedBytes(guard + 64 + guard)
	mr, err := node.RegMR(f.Context(), driver.Memory{Bytes: mem[guard : guard+64]}, driver.AllAccess)
	require.NoError(f, err)
	// The same key and address in each of the fuzzer's processes.
	key, r := driver.Key{Hi: 1, Lo: 2}, mr.(*region)
	delete(node.regions, r.key)
	r.key, r.addr = key, addrBase
	node.regions[key] = r
	seed := func(fr frame, body ...byte) {
		fr.key, fr.addr, fr.length = key, mr.Addr()+fr.addr, max(fr.length, uint32(len(body)))
		b := make([]byte, headerSizes[fr.kind])
		fr.encode(b)
		f.Add(append(b, body...), uint16(len(b)/2))
	}
	seed(frame{kind: kindWrite, flags: flagLast}, 1, 2, 3, 4, 5, 6, 7, 8)
	seed(frame{kind: kindWriteImm, flags: flagLast | flagWantAck, addr: 3}, make([]byte, 20)...)
	seed(frame{kind: kindSend}, make([]byte, 30)...)
	seed(frame{kind: kindRead, flags: flagLast, length: 64})
	seed(frame{kind: kindAtomic, flags: flagLast | flagReply, op: 1, width: 8})
	for _, flags := range []uint8{flagLast, flagLast | flagReply} {
		seed(frame{kind: kindAccumulate, flags: flags, op: uint8(driver.AtomicMul), width: 2, bytes: 30}, make([]byte, 30)...)
		seed(frame{kind: kindAccumulate, flags: flags, op: uint8(driver.AtomicLoad), width: 8, bytes: 64})
		seed(frame{kind: kindAccumulate, flags: flags, op: uint8(driver.AtomicAdd), width: 8, bytes: 72}, make([]byte, 72)...)
	}
	table := make([]byte, driver.RunSize)
	blocks.PutRuns(table, []driver.Run{{At: 8, Block: 4, Count: 3, Stride: 12}})
	seed(frame{kind: kindReadBlocks, flags: flagLast, runs: 1, bytes: 12}, table...)
	seed(frame{kind: kindWriteBlocks, flags: flagLast, runs: 1, bytes: 12}, append(table, "twelve bytes"...)...)
	seed(frame{kind: kindData, flags: flagLast}, make([]byte, 16)...)
	seed(frame{kind: kindValue, flags: flagLast})
	seed(frame{kind: kindAck})
	seed(frame{kind: kindNak, op: 5})
	seed(frame{kind: kindHello})
	seed(frame{kind: kindOpen, stream: 1})
	seed(frame{kind: kindOpened, stream: 1})
	seed(frame{kind: kindProof, stream: 1})
	seed(frame{kind: kindEnd})
	seed(frame{kind: kindWrite, stream: 1, flags: flagLast}, 1)
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		node.t = t
		q := offline(t, node)
		defer q.Close() //nolint:errcheck // always nil
		node.hears(q, func(l *link) {
			i := min(int(cut), len(b))
			if l.process(b[:i]) == nil {
				l.process(b[i:]) //nolint:errcheck // either outcome is fine
			}
		})
		for i, v := range mem {
			if (i < guard || i >= guard+64) && v != 0 {
				t.Fatalf("byte %d outside of the region changed", i-guard)
			}
		}
	})
}

// offline returns a queue pair in a connected state without a peer, with a receive, a
// READ, an atomic and an accumulate outstanding.
func offline(t testing.TB, n *node) *qp {
	q := n.newQP(8)
	_, err := q.PostRecv([]driver.RecvRequest{{Local: segment(make([]byte, 40))}})
	require.NoError(t, err)
	n.attach(q)
	q.lock()
	defer q.unlock()
	q.rq.advertised = q.rq.posted
	for _, op := range []driver.Opcode{driver.OpRead, driver.OpFetchAdd, driver.OpAccumulate} {
		q.sq.Push(&driver.WorkRequest{Op: op, Flags: driver.Fetch, Atomic: driver.AtomicAdd, Width: 8, Local: segment(make([]byte, 8))})
	}
	q.fill()
	q.link.out.reset()
	return q
}
