package fabric

import (
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Flag is an 8-byte word at the target that tells of data: its value becomes
// Value, or grows by it.
type Flag struct {
	Offset int // in the same region, a multiple of 8
	Add    bool
	Value  uint64
}

// WriteFlag stores src at offset and then the flag: whoever sees the flag with
// an atomic load sees the data. It returns at local completion. Both are posted
// in one call on one queue pair, which keeps their order.
func (r *Remote) WriteFlag(ctx context.Context, offset int, src []byte, flag Flag) error {
	p := r.Peer
	if r.Mem != nil {
		if mutant.FlagBeforeData {
			r.storeFlag(flag)
			copy(r.Mem[offset:], src)
			return nil
		}
		copy(r.Mem[offset:], src)
		r.storeFlag(flag)
		return nil
	}
	path := p.PathOf(len(src))
	if len(src) > r.MaxMessage() || path == Bulk && flag.Add && !p.bind.info.ExtendedAtomics {
		// More than one request would tell of completion: one after the other.
		if err := r.Write(ctx, offset, src); err != nil {
			return err
		}
		return r.PostFlag(ctx, flag)
	}
	o := p.f.ops.take(r)
	data, word := 0, 1
	if mutant.FlagBeforeData {
		data, word = 1, 0
	}
	o.write(data, path, r.addr.Add(uint64(offset)), src)
	o.flag(word, r.addr.Add(uint64(flag.Offset)), flag)
	p.Stats.count(len(src) + 8)
	req, err := o.start(ctx, 2)
	if err != nil {
		return err
	}
	return req.Wait(ctx)
}

// storeFlag sets a flag in mapped memory. The atomic orders the data before it,
// and before the look at who waits.
func (r *Remote) storeFlag(flag Flag) {
	word := atomics.Word64(r.Mem[flag.Offset:])
	if flag.Add {
		word.Add(flag.Value)
	} else {
		word.Store(flag.Value)
	}
	r.Peer.bell.Ring()
}

// PostFlag stores a flag alone.
func (r *Remote) PostFlag(ctx context.Context, flag Flag) error {
	p := r.Peer
	if r.Mem != nil {
		r.storeFlag(flag)
		return nil
	}
	o := p.f.ops.take(r)
	o.flag(0, r.addr.Add(uint64(flag.Offset)), flag)
	p.Stats.count(8)
	req, err := o.start(ctx, 1)
	if err != nil {
		return err
	}
	return req.Wait(ctx)
}

// flag fills request i with the store or the addition that sets a flag. Both
// are single atomic accesses at the target.
func (o *op) flag(i int, at driver.RemoteAddr, flag Flag) {
	if !flag.Add {
		binary.NativeEndian.PutUint64(o.value[i][:], flag.Value)
		o.write(i, FMA, at, o.value[i][:])
		return
	}
	if o.peer.bind.info.ExtendedAtomics {
		o.atomic(i, at, Atomic{Op: driver.AtomicAdd, Width: 8, Operand: flag.Value})
		return
	}
	// FETCH_ADD always has a result; nobody reads this one, and the operation
	// must outlive it.
	o.seg[i] = driver.Segment{Mem: o.value[i][:]}
	o.wr[i] = driver.WorkRequest{ID: o.id, Op: driver.OpFetchAdd, Flags: driver.Signaled, Local: o.seg[i : i+1],
		Remote: at, Operand: flag.Value}
}
