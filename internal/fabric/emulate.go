package fabric

import (
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// emulate applies any atomic operation with two that every device has. These are
// FETCH_ADD and CMP_SWAP on aligned words of 8 bytes. A narrower operand is a
// field of its word. Every other operation retries until no other update came
// between its read and its swap.
func (r *Remote) emulate(ctx context.Context, offset int, a Atomic) (uint64, error) {
	if wr, ok := a.native(); ok {
		return r.word(ctx, wr.Op, offset, wr.Compare, wr.Operand)
	}
	back := int((r.addr.Addr + uint64(offset)) & 7)
	word, field := offset-back, fieldOf(back, a.Width)
	seen, err := r.word(ctx, driver.OpFetchAdd, word, 0, 0)
	for err == nil {
		old := field.get(seen)
		want := field.set(seen, atomics.Next(a.Op, int(a.Width), old, a.Operand, a.Compare&field.mask))
		if want == seen && (a.Op == driver.AtomicLoad || a.Op == driver.AtomicCmpSwap) {
			return old, nil
		}
		var now uint64
		if now, err = r.word(ctx, driver.OpCmpSwap, word, seen, want); now == seen && err == nil {
			return old, nil
		}
		r.Peer.Stats.retries.Add(1)
		seen = now
	}
	return 0, err
}

// native returns the request of a device that has a itself.
func (a Atomic) native() (wr driver.WorkRequest, ok bool) {
	if a.Width != 8 {
		return wr, false
	}
	switch a.Op {
	case driver.AtomicAdd:
		return driver.WorkRequest{Op: driver.OpFetchAdd, Operand: a.Operand}, true
	case driver.AtomicCmpSwap:
		return driver.WorkRequest{Op: driver.OpCmpSwap, Compare: a.Compare, Operand: a.Operand}, true
	case driver.AtomicLoad:
		return driver.WorkRequest{Op: driver.OpFetchAdd}, true
	}
	return wr, false
}

// word posts one of the two native operations and returns the old value.
func (r *Remote) word(ctx context.Context, op driver.Opcode, offset int, compare, operand uint64) (uint64, error) {
	o, err := r.newOp(ctx)
	if err != nil {
		return 0, err
	}
	o.wr[0] = driver.WorkRequest{Op: op, Remote: r.addr.Add(uint64(offset)), Compare: compare, Operand: operand}
	return o.fetch(ctx)
}

// A field is some bytes of a word of eight.
type field struct {
	shift uint
	mask  uint64
}

// fieldOf returns the field of width bytes at an offset in its word.
func fieldOf(byteOffset int, width uint8) field {
	mask := ^uint64(0) >> (64 - 8*uint(width))
	if littleEndian {
		return field{uint(byteOffset) * 8, mask}
	}
	return field{uint(8-byteOffset-int(width)) * 8, mask}
}

func (f field) get(word uint64) uint64 { return word >> f.shift & f.mask }

func (f field) set(word, v uint64) uint64 { return word&^(f.mask<<f.shift) | v&f.mask<<f.shift }

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
