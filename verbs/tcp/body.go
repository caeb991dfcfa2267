//go:build linux

package tcp

import (
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A body holds the payload of one ACCUMULATE, WRITE_BLOCKS or READ_BLOCKS at its target, and
// the bytes of the response until they have left.
type body [bodySize]byte

// bodySize bounds such a payload, and its response.
const bodySize = max(driver.MaxAccumulate, driver.MaxBlocks)

// bodies keeps a few that are not in use.
type bodies struct {
	mu   sync.Mutex
	free []*body
}

// maxBodies bounds the bodies that a device keeps without use.
const maxBodies = 8

// take returns a body that no frame uses, or a new one.
func (p *bodies) take() *body {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.free) - 1
	if last < 0 {
		return new(body)
	}
	b := p.free[last]
	p.free = p.free[:last]
	return b
}

func (p *bodies) give(b *body) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < maxBodies {
		p.free = append(p.free, b)
	}
}

// openBody has the next n bytes of the connection go to a body.
func (q *qp) openBody(n int) {
	in := &q.link.in
	if in.body == nil {
		in.body = q.dev.bodies.take()
	}
	in.to.into(in.body[:n])
}

// takeBody returns the body that the connection has filled, for the caller to give back.
func (q *qp) takeBody() *body {
	in := &q.link.in
	b := in.body
	in.body = nil
	return b
}

// putFromBody queues as many bytes of a response in a body as find room, in one frame. It
// reports whether those are the last.
func (q *qp) putFromBody(a *response) (last bool) {
	n := min(len(a.mem), bufferMax-len(q.link.out.buf)-headerSizes[kindData])
	f := frame{kind: kindData, length: uint32(n)}
	if last = n == len(a.mem); last {
		f.flags = flagLast
	}
	q.put(&f)
	copy(q.link.out.extend(n), a.mem)
	a.mem = a.mem[n:]
	if last {
		q.dev.bodies.give(a.body)
	}
	return last
}
