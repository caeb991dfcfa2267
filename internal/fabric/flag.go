package fabric

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Flag is an 8-byte word at the target that tells of data: its value becomes
// Value, or grows by it.
type Flag struct {
	Offset int // in the same region, a multiple of 8
	Add    bool
	Value  uint64
	// Ahead: it may be set ahead of additions that were posted before, where the
	// target's CPU is asked for those. Waiting for the answers takes a round trip.
	Ahead bool
}

// WriteFlag stores src at offset and then the flag: whoever sees the flag with
// an atomic load sees the data. It returns at local completion. Both are posted
// in one call on one queue pair, which keeps their order.
//
// An error for ctx means that a flag which does not add was not posted. Under a
// ctx that has ended before, it does what takes no wait: src is copied.
func (r *Remote) WriteFlag(ctx context.Context, offset int, src []byte, flag Flag) error {
	p := r.Peer
	if r.Mem != nil {
		if mutant.FlagBeforeData {
			r.storeFlag(flag)
			copy(r.Mem[offset:], src)
			return nil
		}
		bulk.Store(r.Mem[offset:], src)
		r.storeFlag(flag)
		return nil
	}
	path, hurried := p.PathOf(len(src)), wait.Context(ctx).Err() != nil
	if hurried && len(src) <= stageSize {
		path = FMA // by way of a stage, where the device copies less
	}
	if len(src) > r.MaxMessage() || flag.Add && !p.bind.info.ExtendedAtomics {
		return r.writeThenFlag(ctx, offset, src, flag)
	}
	o := p.bind.ops.take(r)
	data, word := r.addr.Add(uint64(offset)), r.addr.Add(uint64(flag.Offset))
	n := 1
	if mutant.FlagBeforeData {
		n = o.flag(0, word, flag)
		o.announced(n, path, data, src)
		n++
	} else {
		o.announced(0, path, data, src)
		n += o.flag(1, word, flag)
	}
	if hurried && o.borrowed {
		// Nobody could tell whether the flag was on its way.
		p.bind.ops.give(o)
		p.f.Progress() // stages may come back
		return context.Cause(ctx)
	}
	p.Stats.count(len(src) + 8)
	req, err := o.start(ctx, n)
	if err != nil {
		return err
	}
	return req.handOver(ctx)
}

// writeThenFlag is WriteFlag where more than one request would tell of its
// completion. They are posted in order all the same.
func (r *Remote) writeThenFlag(ctx context.Context, offset int, src []byte, flag Flag) error {
	most := r.MaxMessage()
	for len(src) > most {
		if err := r.Write(ctx, offset, src[:most]); err != nil {
			return err
		}
		offset, src = offset+most, src[most:]
	}
	o := r.Peer.bind.ops.take(r)
	o.announced(0, r.Peer.PathOf(len(src)), r.addr.Add(uint64(offset)), src)
	r.Peer.Stats.count(len(src))
	req, err := o.start(ctx, 1)
	if err != nil {
		return err
	}
	if err = r.PostFlag(ctx, flag); err != nil {
		return errors.Join(req.Wait(ctx), err)
	}
	return req.handOver(ctx)
}

// announced fills request i with a write that arrives, once it is posted, whoever
// gives up: a flag behind it says so.
func (o *op) announced(i int, path Path, to driver.RemoteAddr, src []byte) {
	o.write(i, path, to, src)
	o.wr[i].Flags |= driver.Announced
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
	o := p.bind.ops.take(r)
	n := o.flag(0, r.addr.Add(uint64(flag.Offset)), flag)
	p.Stats.count(8)
	req, err := o.start(ctx, n)
	if err != nil {
		return err
	}
	return req.Wait(ctx)
}

// flag fills requests from i on with the store or the addition that sets a
// flag, a single atomic access at the target, and returns how many they are. On
// devices whose writes are silent the last of them wakes the target.
func (o *op) flag(i int, at driver.RemoteAddr, flag Flag) int {
	silent := o.bind.info.SilentWrites
	o.ordered = !flag.Ahead
	switch {
	case flag.Add && o.f.asks(o.bind):
		// Who applies it rings the bell there.
		o.ask(i, at, Atomic{Op: driver.AtomicAdd, Width: 8, Operand: flag.Value})
		o.alone = true
		return 1
	case !flag.Add:
		binary.NativeEndian.PutUint64(o.word.Mem, flag.Value)
		o.seg[i] = o.word
		o.wr[i] = driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: o.seg[i : i+1], Remote: at}
		if silent {
			o.wr[i].Op, o.wr[i].Flags = driver.OpWriteImm, driver.Inline|driver.Solicited
		}
		return 1
	case o.bind.info.ExtendedAtomics:
		o.atomic(i, at, Atomic{Op: driver.AtomicAdd, Width: 8, Operand: flag.Value})
	default:
		// FETCH_ADD always has a result; nobody reads this one.
		o.wr[i] = driver.WorkRequest{Op: driver.OpFetchAdd, Remote: at, Operand: flag.Value}
		o.result(i, 8)
		o.alone = true
	}
	if !silent {
		return 1
	}
	o.wr[i+1] = driver.WorkRequest{Op: driver.OpWriteImm, Flags: driver.Solicited, Remote: at}
	return 2
}

// WriteWhole stores mem, aligned words, at offset, the last word behind all others:
// whoever sees that by an atomic load sees them. mem is the caller's again when it
// returns. The last word may overtake additions, as a Flag that is Ahead.
//
// An error for ctx means that the last word was not posted.
func (r *Remote) WriteWhole(ctx context.Context, offset int, mem []byte) error {
	if r.Mem != nil || !r.Peer.bind.wholeWrite(len(mem)) || mutant.FlagBeforeData {
		last := len(mem) - 8
		flag := Flag{Offset: offset + last, Value: binary.NativeEndian.Uint64(mem[last:]), Ahead: true}
		return r.WriteFlag(ctx, offset, mem[:last], flag)
	}
	o := r.Peer.bind.ops.take(r)
	o.write(0, FMA, r.addr.Add(uint64(offset)), mem)
	r.Peer.Stats.count(len(mem))
	_, err := o.start(ctx, 1)
	return err
}

// WriteWholeBehind is WriteWhole of mem behind body, of at most MaxMessage bytes, which it
// stores at another offset: whoever sees the last word of mem sees all of both. Both are
// the caller's again when it returns, and an error for ctx means that the last word was
// not posted.
func (r *Remote) WriteWholeBehind(ctx context.Context, bodyOffset int, body []byte, offset int, mem []byte) error {
	if r.Mem != nil {
		bulk.Store(r.Mem[bodyOffset:], body)
		return r.WriteWhole(ctx, offset, mem)
	}
	b, at := r.Peer.bind, r.addr.Add(uint64(bodyOffset))
	o := b.ops.take(r)
	if b.wholeWrite(len(mem)) && len(body) <= b.inlineMax() {
		o.copied(0, at, body)
		o.copied(1, r.addr.Add(uint64(offset)), mem)
		r.Peer.Stats.count(len(body) + len(mem))
		_, err := o.start(ctx, 2)
		return err
	}
	o.announced(0, r.Peer.PathOf(len(body)), at, body)
	r.Peer.Stats.count(len(body))
	req, err := o.start(ctx, 1)
	if err != nil {
		return err
	}
	if err = r.WriteWhole(ctx, offset, mem); err != nil {
		return errors.Join(req.Wait(ctx), err)
	}
	return req.handOver(ctx)
}

// wholeWrite tells whether one inline request writes n bytes as WriteWhole does.
func (b *binding) wholeWrite(n int) bool {
	return b.info.WholeWrites && !b.info.SilentWrites && n <= min(driver.WholeWrite, b.info.MaxInline)
}
