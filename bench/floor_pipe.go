//go:build linux

package main

import (
	"context"
	goruntime "runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/window"
)

// The floors of pipes on mapped memory are pipes written by hand in the same
// layout. Each has a heap that blocks walk through, a ring of flags, and, at the
// writer, the count of blocks read. The program bench/c/pingpong.c is the same in
// C.

// rpipeLatencyFloor is the ping-pong of a pipe's layout by bare loads and stores.
func rpipeLatencyFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return roundTrip(ctx, h, size, size)
	}
	p, err := h.rawDuplex(ctx, size, size)
	if err != nil {
		return task{}, err
	}
	return task{run: h.pingPong(p.send, p.receive), free: p.free}, nil
}

// rpipeBandwidthFloor is the stream of a pipe's layout by bare loads and stores. Rank 0 has bytes
// to copy, as Send has.
func rpipeBandwidthFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return socketStream(ctx, h, size, true)
	}
	p, err := h.rawDuplex(ctx, size, 1)
	if err != nil {
		return task{}, err
	}
	if h.rank == 0 {
		p.fill = make([]byte, size)
	}
	return task{batch: h.window, each: h.window, run: h.streaming(p.send, p.receive), free: p.free}, nil
}

// A rawDuplex is a rank's part of two such pipes.
type rawDuplex struct {
	out, in rawPipe
	fill    []byte
	sum     byte
	free    func(ctx context.Context) error
}

// A rawPipe is an end of one.
type rawPipe struct {
	heap   []byte   // at the reader
	ring   []uint64 // at the reader: the count of all blocks so far and a block's offset
	credit *uint64  // at the writer: blocks read so far
	size   int
	slots  int // blocks that the heap has room for
	count  uint64
}

// creditAt is the place of the credit behind the ring, in a line of its own.
const creditAt = rpipe.DefaultWidth + lineSize/8

// rawDuplex allocates both. Kind: collective.
func (h *harness) rawDuplex(ctx context.Context, request, reply int) (*rawDuplex, error) {
	size := pipeHeap(max(request, reply))
	heap, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return nil, err
	}
	words, err := window.Allocate[uint64](ctx, h.world, creditAt+lineSize/8)
	if err != nil {
		return nil, err
	}
	d := &rawDuplex{free: func(ctx context.Context) error {
		if err := words.Free(ctx); err != nil {
			return err
		}
		return heap.Free(ctx)
	}}
	if h.rank > target {
		return d, nil
	}
	theirHeap, err := heap.Shared(ctx, target-h.rank)
	if err != nil {
		return nil, err
	}
	theirWords, err := words.Shared(ctx, target-h.rank)
	if err != nil {
		return nil, err
	}
	out, in := request, reply
	if h.rank == target {
		out, in = reply, request
	}
	d.out = rawPipe{heap: theirHeap, ring: theirWords[:rpipe.DefaultWidth], credit: &words.Local()[creditAt], size: out, slots: size / stride(out)}
	d.in = rawPipe{heap: heap.Local(), ring: words.Local()[:rpipe.DefaultWidth], credit: &theirWords[creditAt], size: in, slots: size / stride(in)}
	return d, nil
}

// A flag is lap 32 | offset 32; a lap here is the count of blocks. The reader
// takes the block's place from the flag, as a pipe's does. If it knew the place
// beforehand, the processor would read ahead while the writer still writes there.
const lapShift = 32

// offset returns the offset at which the writer puts the next block.
func (p *rawPipe) offset() int { return int(p.count%uint64(p.slots)) * stride(p.size) }

// flag returns the next block's flag.
func (p *rawPipe) flag() *uint64 { return &p.ring[p.count%uint64(len(p.ring))] }

// send puts a block and its flag, once the reader's credit leaves room.
func (d *rawDuplex) send(ctx context.Context, _ int) error {
	p := &d.out
	if room := uint64(min(p.slots, len(p.ring))); p.count >= room {
		if _, err := reach(ctx, p.credit, p.count-room+1); err != nil {
			return err
		}
	}
	at, flag := p.offset(), p.flag()
	if block := p.heap[at : at+p.size]; d.fill != nil {
		copy(block, d.fill)
	} else {
		rewrite(block)
	}
	p.count++
	atomic.StoreUint64(flag, p.count<<lapShift|uint64(at))
	return nil
}

// creditEvery returns the number of blocks after which the reader writes the
// credit.
func (p *rawPipe) creditEvery() uint64 { return uint64(max(min(p.slots, len(p.ring))/2, 1)) }

// receive waits for the next flag, reads the block, and gives credit now and then.
func (d *rawDuplex) receive(ctx context.Context) error {
	p := &d.in
	flag, err := reach(ctx, p.flag(), (p.count+1)<<lapShift)
	if err != nil {
		return err
	}
	at := int(uint32(flag))
	d.sum += read(p.heap[at : at+p.size])
	p.count++
	if p.count%p.creditEvery() == 0 {
		atomic.StoreUint64(p.credit, p.count)
	}
	return nil
}

// pollsBetweenYields lets a floor end on a machine with other work to do.
const pollsBetweenYields = 10_000

// reach polls a word until it is at least value, and returns it.
func reach(ctx context.Context, word *uint64, value uint64) (uint64, error) {
	for polls := 1; ; polls++ {
		if v := atomic.LoadUint64(word); v >= value {
			return v, nil
		}
		if polls%pollsBetweenYields != 0 {
			continue
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		goruntime.Gosched()
		unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) //nolint:errcheck // never fails
	}
}
