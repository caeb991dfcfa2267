//go:build linux

package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A device is one open context: a listening socket, an epoll with that and all
// connections in it, and one goroutine.
//
// Locks: token, a queue pair's, then any one of the other locks. A goroutine takes a
// second queue pair's lock only while it holds the token.
type device struct {
	id        uint64
	endpoints []netip.AddrPort
	nearby    []nic // interfaces of this host, listed at the first use; the token guards it
	timeout   time.Duration
	streams   int         // of one connection
	tls       *tls.Config // nil: connections are not encrypted
	bell      *wait.Bell
	onEvent   func(driver.AsyncEvent)
	goes      sync.WaitGroup // the goroutine, and calls of OnEvent and Established

	// A goroutine holds token while it makes progress; token guards the fields below.
	token     sync.Mutex
	listener  int
	epfd      int // all sockets
	closed    bool
	links     []*link // by slot, which the epoll returns
	freeSlots []int32
	linkGen   int32
	flowing   int   // links on which frames flow
	hot       *link // the link on which frames flow, if it is the only one and has received, or nil
	hotLeft   int   // polls of hot alone until the next epoll
	paths     map[pathKey]*path
	strangers []*link   // accepted and not identified yet, oldest first
	early     []*link   // authenticated, while no queue pair names their device, oldest first
	declined  []*stream // of which the dialer does not know yet
	scratch   []byte    // buffer of receives
	plain     []byte    // with TLS, buffer of decrypted bytes
	events    [64]unix.EpollEvent
	server    server
	watchdog  watchdog

	gone atomic.Bool // closed, for those without the token
	news atomic.Bool // a completion or a change of registered memory: ring the bell

	bodies bodies

	// The runs of the blocks in hand; token guards it.
	runs []driver.Run

	regionMu sync.RWMutex
	regions  map[driver.Key]*region // nil once closed

	qpMu  sync.Mutex
	qps   map[uint32]*qp
	allQP []*qp // the same, or nil; the slice never changes
	qpNum uint32

	flushMu sync.Mutex
	waiting []*qp       // queue pairs with combined frames that wait
	spare   []*qp       // the former list, for reuse
	dirty   atomic.Bool // waiting is not empty
	ticker  ticker
}

// openDevice makes the device of a listener, which it owns, and starts its goroutine and its timers.
func openDevice(listener int, endpoints []netip.AddrPort, cfg Config, opts driver.Options) (*device, error) {
	d := &device{
		id: newDeviceID(), paths: make(map[pathKey]*path),
		listener: listener, endpoints: endpoints, timeout: cfg.PeerTimeout, streams: cfg.Streams, tls: cfg.TLS,
		bell: opts.Bell, onEvent: opts.OnEvent, scratch: make([]byte, scratchSize),
		regions: make(map[driver.Key]*region), qps: make(map[uint32]*qp),
	}
	if d.tls != nil {
		d.plain = make([]byte, maxRecord)
	}
	if d.bell == nil {
		d.bell = wait.NewLocal()
	}
	if err := d.openEpoll(); err != nil {
		unix.Close(listener) //nolint:errcheck // the first error counts
		return nil, fmt.Errorf("tcp: opening epoll: %w", memory.Descriptors(err))
	}
	d.startTicker()
	d.goes.Go(d.run)
	return d, nil
}

func (d *device) Info() driver.DeviceInfo {
	return describe(fmt.Sprintf("listens at %v", d.endpoints))
}

func (d *device) CreateCQ(_ context.Context, depth int) (driver.CQ, error) {
	if d.gone.Load() {
		return nil, driver.ErrClosed
	}
	c := &completionQueue{dev: d}
	c.Init(depth)
	return c, nil
}

// Close ends all connections and the goroutine. It is idempotent.
func (d *device) Close() error {
	d.token.Lock()
	if d.closed {
		d.token.Unlock()
		return nil
	}
	d.closed = true
	d.gone.Store(true)
	d.token.Unlock()

	for _, q := range d.queuePairs() {
		q.Close() //nolint:errcheck // always nil
	}
	d.regionMu.Lock()
	for _, r := range d.regions {
		r.closed = true
	}
	d.regions = nil
	d.regionMu.Unlock()

	d.ticker.stop()
	d.token.Lock()
	for _, l := range d.links {
		if l != nil {
			l.drop()
		}
	}
	if d.watchdog.timer != nil {
		d.watchdog.timer.Stop()
	}
	err := unix.Close(d.listener)
	d.token.Unlock()
	err = errors.Join(err, d.server.outer.Close()) // ends the goroutine
	d.goes.Wait()
	err = errors.Join(err, unix.Close(d.epfd))
	d.bell.Ring()
	return err
}

// addQP gives a queue pair its number, by which dialers name it. A number is never used again.
func (d *device) addQP(q *qp) error {
	d.qpMu.Lock()
	defer d.qpMu.Unlock()
	if d.gone.Load() {
		return driver.ErrClosed
	}
	d.qpNum++
	q.num = d.qpNum
	d.qps[q.num], d.allQP = q, nil
	return nil
}

func (d *device) removeQP(q *qp) {
	d.qpMu.Lock()
	defer d.qpMu.Unlock()
	delete(d.qps, q.num)
	d.allQP = nil
}

func (d *device) queuePair(num uint32) *qp {
	d.qpMu.Lock()
	defer d.qpMu.Unlock()
	return d.qps[num]
}

func (d *device) queuePairs() []*qp {
	d.qpMu.Lock()
	defer d.qpMu.Unlock()
	if d.allQP == nil {
		d.allQP = slices.Collect(maps.Values(d.qps))
	}
	return d.allQP
}

// announce reports an event on a goroutine of its own, so that no caller waits for
// OnEvent.
func (d *device) announce(e driver.AsyncEvent) {
	d.note()
	if d.onEvent != nil {
		d.goes.Go(func() { d.onEvent(e) })
	}
}
