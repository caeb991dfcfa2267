package fabric

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Flag sets an 8-byte word that tells the target of data: the word becomes Value, or
// grows by it.
type Flag struct {
	Offset int // in the region, a multiple of 8
	// In is the region at the same peer, nil for that of the data. Both are mapped, or neither.
	In    *Remote
	Value uint64
	Add   bool
	// Ahead lets the flag overtake earlier additions that the target's CPU applies. To
	// wait for their responses takes a round trip.
	Ahead bool
	// Late lets the look for goroutines that wait overtake a store to mapped memory, which takes
	// no barrier then. They look again after pauses ([wait.Stored]).
	Late bool
}

// flagSize is the size of a flag, in bytes.
const flagSize = 8

// StoreFlag sets a flag in mapped memory. The store is behind the data. It is ahead of the look
// for goroutines that wait, unless the flag is Late.
func (r *Remote) StoreFlag(flag *Flag) {
	at := r
	if flag.In != nil {
		at = flag.In
	}
	word := atomics.Word64(at.Mem[flag.Offset:])
	switch {
	case flag.Add:
		word.Add(flag.Value)
	case flag.Late:
		atomics.StoreRelease(word, flag.Value)
	default:
		word.Store(flag.Value)
	}
	r.Peer.bell.Ring()
}

// with returns the Remote that has the flag.
func (r *Remote) with(flag Flag) *Remote {
	if flag.In != nil {
		return flag.In
	}
	return r
}

// flag fills requests from i on with the store or the addition that sets a flag. It
// returns how many it filled. The target sees one atomic access. On devices whose writes
// are silent the last request wakes the target.
func (o *op) flag(i int, at driver.RemoteAddr, flag Flag) int {
	silent := o.bind.info.Writes.Silent
	o.ordered = !flag.Ahead
	switch {
	case o.f.byCPU(o.bind) && (flag.Add || bounced(at)):
		// The target applies the addition, or the store to memory without registration, and rings its own bell.
		a := Atomic{Op: driver.AtomicAdd, Width: 8, Operand: flag.Value}
		if !flag.Add {
			a.Op = driver.AtomicSwap
		}
		o.request(i, at, a)
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
	case o.bind.info.Atomics.Extended:
		o.atomic(i, at, Atomic{Op: driver.AtomicAdd, Width: 8, Operand: flag.Value})
	default:
		// FETCH_ADD always has a result. No goroutine reads this one.
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
