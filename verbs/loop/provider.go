// Package loop connects ranks that are goroutines of one process.
//
//	rank 0: Context ---+                       +--- Context: rank 1
//	         QP --PostSend--> [copy, CAS] --> MR (Go heap)
//	         CQ <-- completion           +--> CQ of rank 1, bell of rank 1
//
// Memory is ordinary Go memory. The goroutine that posts a request carries it
// out: data by copy, atomics by sync/atomic. So `go test -race` sees every
// remote access of a program, and reports accesses that nothing orders. It is
// the provider for tests, examples and debugging.
//
// A SEND before its receive waits in the sender's queue, and so does a request
// before the peer has connected. The goroutine that ends the wait carries the
// request out.
//
// # Promises beyond those of package driver
//
// An 8-byte WRITE from one segment to an 8-byte aligned address is a single
// atomic store. Such a READ is a single atomic load. Flags rely on both. All
// other data moves by plain copies.
package loop

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

const (
	providerName = "loop"
	deviceName   = "loop0"
)

// These are the limits of a device.
const (
	maxQPDepth  = 1 << 15
	maxCQDepth  = 1 << 20
	maxSegments = 32
	maxMessage  = 1 << 40
	maxInline   = 1 << 10
)

// A Provider is the wire between all contexts opened on it. Contexts of
// different Providers do not reach each other.
type Provider struct {
	mu   sync.Mutex
	last uint32
	qps  map[address]*qp
}

var _ driver.Provider = (*Provider)(nil)

// New returns a wire of its own.
func New() *Provider { return &Provider{qps: map[address]*qp{}} }

// Name returns "loop".
func (p *Provider) Name() string { return providerName }

// Devices lists the one device.
func (p *Provider) Devices(context.Context) ([]driver.DeviceInfo, error) {
	return []driver.DeviceInfo{info()}, nil
}

// Open makes the context of one rank.
func (p *Provider) Open(_ context.Context, device string, opts driver.Options) (driver.Context, error) {
	if device != deviceName {
		return nil, fmt.Errorf("%w: loop has no device %q, only %q", driver.ErrInvalid, device, deviceName)
	}
	if opts.Bell == nil {
		opts.Bell = wait.NewLocal()
	}
	c := &loopContext{provider: p, bell: opts.Bell, onEvent: opts.OnEvent}
	c.keys.init()
	return c, nil
}

// info returns what the device can do. A WRITE is applied when it completes, since a request is a call.
func info() driver.DeviceInfo {
	return driver.DeviceInfo{
		Provider:    providerName,
		Name:        deviceName,
		Detail:      "goroutines of this process, Go memory",
		MaxQPDepth:  maxQPDepth,
		MaxCQDepth:  maxCQDepth,
		MaxSegments: maxSegments,
		MaxMessage:  maxMessage,
		MaxInline:   maxInline,
		Memory:      driver.MemoryInfo{Maps: true},
		Writes:      driver.WriteInfo{Applied: true},
		Atomics:     driver.AtomicInfo{Extended: true, Pairs: atomics.Pairs(), Coherent: true},
		Blocks:      true,
		SameHost:    true,
	}
}

// An address is a QP's number and a token that cannot be guessed:
//
//	0        4               12
//	| number | token         |   little endian
type address [addressSize]byte

const addressSize = 12

var errAddress = errors.New("not the address of a loop queue pair")

// attach gives q its number and address.
func (p *Provider) attach(q *qp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	q.num = p.last
	binary.LittleEndian.PutUint32(q.addr[:4], q.num)
	rand.Read(q.addr[4:])
	p.qps[q.addr] = q
}

func (p *Provider) detach(q *qp) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.qps, q.addr)
}

// find returns the QP at a peer's address. One that is gone is not found.
func (p *Provider) find(peer []byte) (*qp, error) {
	if len(peer) != addressSize {
		return nil, fmt.Errorf("%w: %w: %d bytes", driver.ErrInvalid, errAddress, len(peer))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.qps[address(peer)]
	if q == nil {
		return nil, fmt.Errorf("%w: no queue pair has this address on this wire; was it closed?", driver.ErrLost)
	}
	return q, nil
}
