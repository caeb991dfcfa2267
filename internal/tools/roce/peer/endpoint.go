//go:build linux

package peer

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

// Counts has what an Endpoint received. Requests and Repeated are packets, the others
// messages that the endpoint applied.
type Counts struct {
	Requests, Repeated            int
	Writes, Sends, Reads, Atomics int
	Responses                     int // packets that respond to requests of tests
}

// An Endpoint is one queue pair of a Peer. All calls are local and safe for concurrent use.
type Endpoint struct {
	num uint32
	out func(remote uint32, packets []wire.Packet) error

	mu        sync.Mutex
	remote    uint32 // the device's queue pair
	conduct   Conduct
	resp      responder
	responses []wire.Packet // to requests of tests
	sent      []wire.Packet
	changed   chan struct{} // closed, and made anew, for each packet
}

// memoryAt is the address of an endpoint's memory as requests name it.
const memoryAt = 1 << 40

// newEndpoint returns an endpoint with a number, memory and a function that sends its packets.
func newEndpoint(num uint32, memory []byte, out func(uint32, []wire.Packet) error) *Endpoint {
	e := &Endpoint{num: num, out: out, changed: make(chan struct{})}
	e.resp = responder{memory: memory, addr: memoryAt, key: rand.Uint32() | 1}
	return e
}

// Num returns the queue pair's number.
func (e *Endpoint) Num() uint32 { return e.num }

// Addr returns the address and the key of the endpoint's memory.
func (e *Endpoint) Addr() (addr uint64, key uint32) { return e.resp.addr, e.resp.key }

// Connect connects to a queue pair of the device, whose first packet has number psn. The endpoint
// forgets its earlier connection, but neither its memory nor its counts.
func (e *Endpoint) Connect(remote, psn uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := &e.resp
	e.remote = remote
	e.resp = responder{memory: r.memory, addr: r.addr, key: r.key, counts: r.counts, expect: psn & wire.PSNMask}
}

// Behave changes the endpoint's conduct.
func (e *Endpoint) Behave(c Conduct) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conduct = c
}

// Memory returns a copy of the endpoint's memory.
func (e *Endpoint) Memory() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.resp.memory)
}

// Counts returns the counts so far.
func (e *Endpoint) Counts() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.resp.counts
}

// Sent returns the responses that the endpoint sent, also in earlier connections. They are in
// the order of sending.
func (e *Endpoint) Sent() []wire.Packet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.sent)
}

// Responses returns the device's responses to requests that the test sent, in the order of arrival.
func (e *Endpoint) Responses() []wire.Packet {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.responses)
}

// Send sends packets to the queue pair that the endpoint is connected to. It sets their
// number of that queue pair and their partition, and nothing else.
func (e *Endpoint) Send(packets ...wire.Packet) error {
	e.mu.Lock()
	remote := e.remote
	e.mu.Unlock()
	return e.out(remote, packets)
}

// Await waits until the counts satisfy enough. It returns the cause of ctx if that ends
// first.
func (e *Endpoint) Await(ctx context.Context, enough func(Counts) bool) error {
	for {
		e.mu.Lock()
		counts, changed := e.resp.counts, e.changed
		e.mu.Unlock()
		if enough(counts) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// receive takes a packet of the device, and returns the responses that leave for the queue pair
// remote.
func (e *Endpoint) receive(p *wire.Packet) (remote uint32, out []wire.Packet) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() {
		close(e.changed)
		e.changed = make(chan struct{})
	}()
	if !p.Op.IsRequest() {
		e.responses = append(e.responses, *p)
		e.resp.counts.Responses++
		return 0, nil
	}
	e.resp.counts.Requests++
	switch {
	case e.conduct.Silent:
	case e.conduct.Refuse != 0:
		out = e.resp.respond(e.conduct.Refuse, p.PSN)
	default:
		out = e.conduct.send(e.resp.receive(p))
	}
	e.sent = append(e.sent, out...)
	return e.remote, out
}
