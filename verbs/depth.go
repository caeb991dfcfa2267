package verbs

import "sync/atomic"

// sendDepth counts the slots of a send queue as ibverbs does: a slot is free
// again once its completion, or that of a signaled request posted after it, was
// polled. Posters hold the queue's lock; pollers take none.
//
// After a failure or a cancellation, unsignaled requests complete as well. A
// completion then no longer names the slots that it frees. Only the provider
// counts from then on, until the QP is reset.
type sendDepth struct {
	depth   int
	marks   []atomic.Uint64 // ring, made for the first signaled request: slots in use up to and with each such request
	tail    atomic.Uint64   // marks ever set, by posters
	head    atomic.Uint64   // marks ever taken, by pollers
	posted  uint64          // slots ever used, by posters
	retired atomic.Uint64   // slots ever given back, by pollers
	inexact atomic.Bool
}

func (d *sendDepth) init(depth int) { d.depth = depth }

// room returns how many more requests the queue takes.
func (d *sendDepth) room() int {
	if d.inexact.Load() {
		return d.depth
	}
	return d.depth - int(d.posted-d.retired.Load())
}

// take uses a slot for each of wrs before the provider sees them: a completion
// may be polled at once. untake gives back the slots of requests that the
// provider refused.
func (d *sendDepth) take(wrs []WorkRequest) {
	if d.inexact.Load() {
		return
	}
	for i := range wrs {
		d.posted++
		if wrs[i].Flags&Signaled != 0 {
			if d.marks == nil {
				d.marks = make([]atomic.Uint64, d.depth)
			}
			tail := d.tail.Load()
			d.marks[tail%uint64(d.depth)].Store(d.posted)
			d.tail.Store(tail + 1)
		}
	}
}

// untake takes back requests that the provider refused, the last ones that were taken.
func (d *sendDepth) untake(wrs []WorkRequest) {
	if d.inexact.Load() {
		return
	}
	for i := range wrs {
		d.posted--
		if wrs[i].Flags&Signaled != 0 {
			d.tail.Add(^uint64(0))
		}
	}
}

// complete gives back the slots that a successful completion stands for.
func (d *sendDepth) complete() {
	for !d.inexact.Load() {
		head := d.head.Load()
		if head >= d.tail.Load() {
			return
		}
		upTo := d.marks[head%uint64(d.depth)].Load()
		if d.head.CompareAndSwap(head, head+1) {
			d.retire(upTo)
			return
		}
	}
}

// retire counts the slots up to number upTo as free.
func (d *sendDepth) retire(upTo uint64) {
	for {
		old := d.retired.Load()
		if old >= upTo || d.retired.CompareAndSwap(old, upTo) {
			return
		}
	}
}

// reset frees all slots. The queue pair is in RESET.
func (d *sendDepth) reset() {
	d.posted = 0
	d.tail.Store(0)
	d.head.Store(0)
	d.retired.Store(0)
	d.inexact.Store(false)
}

// recvDepth counts the slots of a receive queue: each completes exactly once.
type recvDepth struct {
	depth   int
	used    atomic.Int64
	inexact atomic.Bool
}

// room returns how many receives may be posted, as far as verbs knows.
func (d *recvDepth) room() int {
	if d.inexact.Load() {
		return d.depth
	}
	return d.depth - int(d.used.Load())
}

// reset frees all slots. The queue pair is in RESET.
func (d *recvDepth) reset() {
	d.used.Store(0)
	d.inexact.Store(false)
}
