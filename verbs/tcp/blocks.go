//go:build linux

package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

// decodeBlocks reads the fields of a WRITE_BLOCKS or READ_BLOCKS. Its payload has the runs, and
// that of a WRITE_BLOCKS the bytes of the blocks behind them.
func (f *frame) decodeBlocks(b []byte) error {
	f.runs = binary.LittleEndian.Uint32(b[offRuns:])
	f.bytes = binary.LittleEndian.Uint32(b[offBytes:])
	payload := uint64(f.runs) * driver.RunSize
	size := payload + uint64(f.bytes)
	if f.kind == kindWriteBlocks {
		payload = size
	}
	if f.runs == 0 || f.bytes == 0 || size > driver.MaxBlocks || uint64(f.length) != payload {
		return fmt.Errorf("%w: %d bytes in %d runs, with a payload of %d", errProtocol, f.bytes, f.runs, f.length)
	}
	return nil
}

// putBlocks queues a WRITE_BLOCKS or READ_BLOCKS: one frame with its runs.
func (q *qp) putBlocks(r *request) bool {
	table := len(r.Runs) * driver.RunSize
	f := frame{kind: kindReadBlocks, flags: flagLast, runs: uint32(len(r.Runs)), bytes: uint32(r.length),
		length: uint32(table), addr: r.Remote.Addr, key: r.Remote.RKey}
	writes := r.Op == driver.OpWriteBlocks
	need, copied := headerSizes[f.kind]+table, r.copied()
	if writes {
		f.kind = kindWriteBlocks
		f.length += f.bytes
		f.flags |= q.wantAck(r.Flags)
	}
	if writes && copied {
		need += r.length
	}
	if !q.link.out.fits(need, requestRoom) {
		return false
	}
	q.put(&f)
	blocks.PutRuns(q.link.out.extend(table), r.Runs)
	if writes {
		q.gather(r, r.length, copied)
	}
	r.Sent = r.length
	q.sq.passed(r)
	return true
}

// applyBlocks moves the blocks of a WRITE_BLOCKS or READ_BLOCKS once its payload has arrived. It
// refuses all of them if it refuses one.
func (q *qp) applyBlocks(f *frame) error {
	b := q.takeBody()
	table := f.table()
	q.dev.runs = blocks.AppendRuns(q.dev.runs[:0], b[:table])
	need := driver.RemoteRead
	if f.kind == kindWriteBlocks {
		need = driver.RemoteWrite
	}
	mem, from, status := q.dev.places(f, q.dev.runs, need)
	if status != driver.Success {
		q.dev.bodies.give(b)
		q.refuse(status)
		return nil
	}
	if f.kind == kindWriteBlocks {
		blocks.Unpack(mem, from, q.dev.runs, b[table:f.length])
		q.dev.bodies.give(b)
		q.dev.note()
		q.applied(f)
		return nil
	}
	blocks.Pack(b[:f.bytes], mem, from, q.dev.runs)
	seq := q.done
	q.done++
	return q.owe(response{kind: kindData, seq: seq, mem: b[:f.bytes], body: b})
}

// places finds the memory that holds all blocks, and the place of its first byte.
func (d *device) places(f *frame, runs []driver.Run, need driver.Access) (mem []byte, from int, status driver.Status) {
	size, from, to, ok := blocks.Span(runs)
	if !ok || size != int(f.bytes) {
		return nil, 0, driver.RemoteInvalid
	}
	_, mem, status = d.locateAt(f.key, f.addr+uint64(from), to-from, need)
	return mem, from, status
}
