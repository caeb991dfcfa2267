package trace

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

const (
	opcodes  = int(driver.OpRecvImm) + 1
	statuses = int(driver.GeneralError) + 1
)

// Counts counts the requests and completions of one QP, or of all. A request
// counts once the wrapped provider has taken it.
type Counts struct {
	Posted [opcodes]uint64 // work requests, by driver.Opcode
	Bytes  [opcodes]uint64 // bytes in their segments, by driver.Opcode

	Inline, Signaled, Fenced, Solicited uint64 // work requests with that flag

	PostCalls uint64 // calls of PostSend, however many requests each carried
	Refused   uint64 // of these, how many returned an error

	Recvs        uint64 // receives posted
	RecvCalls    uint64
	RecvsRefused uint64 // calls of PostRecv that returned an error

	Completions [statuses]uint64 // polled, by driver.Status

	Maps    uint64
	Cancels uint64
}

// Requests returns the number of work requests of all opcodes.
func (c *Counts) Requests() uint64 {
	var n uint64
	for _, posted := range c.Posted {
		n += posted
	}
	return n
}

// counters holds the fields of Counts as atomic counters. Each moves alone: a
// snapshot of a busy QP need not add up.
type counters struct {
	posted, bytes                       [opcodes]atomic.Uint64
	inline, signaled, fenced, solicited atomic.Uint64
	postCalls, refused                  atomic.Uint64
	recvs, recvCalls, recvsRefused      atomic.Uint64
	completions                         [statuses]atomic.Uint64
	maps, cancels                       atomic.Uint64
}

// request counts a work request that the wrapped provider took.
func (c *counters) request(wr *driver.WorkRequest) {
	op := int(wr.Op)
	if op >= opcodes {
		op = 0
	}
	c.posted[op].Add(1)
	c.bytes[op].Add(uint64(wr.Length()))
	for _, f := range [...]struct {
		flag  driver.Flags
		count *atomic.Uint64
	}{
		{driver.Inline, &c.inline},
		{driver.Signaled, &c.signaled},
		{driver.Fence, &c.fenced},
		{driver.Solicited, &c.solicited},
	} {
		if wr.Flags&f.flag != 0 {
			f.count.Add(1)
		}
	}
}

// completion counts a completion that the caller has polled.
func (c *counters) completion(status driver.Status) {
	if int(status) >= statuses {
		status = driver.GeneralError
	}
	c.completions[status].Add(1)
}

// read copies the counts. Counts that move meanwhile may not fit each other.
func (c *counters) read() Counts {
	s := Counts{
		Inline: c.inline.Load(), Signaled: c.signaled.Load(), Fenced: c.fenced.Load(), Solicited: c.solicited.Load(),
		PostCalls: c.postCalls.Load(), Refused: c.refused.Load(),
		Recvs: c.recvs.Load(), RecvCalls: c.recvCalls.Load(), RecvsRefused: c.recvsRefused.Load(),
		Maps: c.maps.Load(), Cancels: c.cancels.Load(),
	}
	load(s.Posted[:], c.posted[:])
	load(s.Bytes[:], c.bytes[:])
	load(s.Completions[:], c.completions[:])
	return s
}

func load(to []uint64, from []atomic.Uint64) {
	for i := range from {
		to[i] = from[i].Load()
	}
}

// reset stores 0 in each count.
func (c *counters) reset() {
	for _, counts := range [...][]atomic.Uint64{c.posted[:], c.bytes[:], c.completions[:]} {
		for i := range counts {
			counts[i].Store(0)
		}
	}
	for _, count := range [...]*atomic.Uint64{
		&c.inline, &c.signaled, &c.fenced, &c.solicited, &c.postCalls, &c.refused,
		&c.recvs, &c.recvCalls, &c.recvsRefused, &c.maps, &c.cancels,
	} {
		count.Store(0)
	}
}
