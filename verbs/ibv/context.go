//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A device is one open context.
//
// Locks: those of completion queues by id, qp.post, qp.recvPost, qp.mu, then
// device.mu. No goroutine takes a lock while it holds device.mu.
type device struct {
	hw      *hardware
	cfg     Config
	bell    *wait.Bell
	onEvent func(driver.AsyncEvent)

	files []*os.File     // completion channel and asynchronous events, in the netpoller
	goes  sync.WaitGroup // their readers, and calls of OnEvent
	gone  atomic.Bool    // closed, for those without a lock

	incarnations atomic.Uint32
	lastCQ       atomic.Uint64
	watchdog     watchdog

	making sync.RWMutex // held while an object is made, so that Close sees it

	mu      sync.Mutex
	closed  bool
	cqs     map[uint64]*completionQueue
	qps     map[uint32]*qp
	regions map[*region]struct{}
}

// newDevice makes a device of opened hardware, and starts to listen for its events. The watchdog's
// timer stays off until a queue pair needs it.
func newDevice(hw *hardware, cfg Config, opts driver.Options) (*device, error) {
	d := &device{
		hw: hw, cfg: cfg, bell: opts.Bell, onEvent: opts.OnEvent,
		cqs: map[uint64]*completionQueue{}, qps: map[uint32]*qp{}, regions: map[*region]struct{}{},
	}
	if d.bell == nil {
		d.bell = wait.NewLocal()
	}
	d.watchdog.timer = time.AfterFunc(time.Hour, d.look)
	d.watchdog.timer.Stop()
	if err := d.listen(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *device) Info() driver.DeviceInfo { return d.hw.info() }

// Close destroys everything that was made on the device. It is idempotent.
func (d *device) Close() error {
	if d.gone.Swap(true) {
		return nil
	}
	d.making.Lock() // waits for objects that are being made; later calls fail
	d.mu.Lock()
	d.closed = true
	qps, cqs := slices.Collect(maps.Values(d.qps)), slices.Collect(maps.Values(d.cqs))
	regions := slices.Collect(maps.Keys(d.regions))
	d.mu.Unlock()
	d.making.Unlock()

	d.watchdog.stop()
	for _, f := range d.files {
		f.Close()
	}
	d.goes.Wait()
	var errs []error
	for _, q := range qps {
		errs = append(errs, q.Close())
	}
	for _, c := range cqs {
		errs = append(errs, c.Close())
	}
	for _, r := range regions {
		errs = append(errs, r.Close())
	}
	errs = append(errs, d.hw.close())
	d.bell.Ring()
	return errors.Join(errs...)
}

// NewLanding returns ErrUnsupported: a device refuses writes to unregistered memory,
// which ends the connection.
func (d *device) NewLanding(context.Context) (driver.Landing, error) {
	return nil, driver.ErrUnsupported
}

// CreateCQ implements driver.Context. Events of the device name the queue by its id, since it may
// be destroyed by then.
func (d *device) CreateCQ(_ context.Context, depth int) (driver.CQ, error) {
	if limit := d.hw.info().MaxCQDepth; depth < 1 || depth > limit {
		return nil, fmt.Errorf("%w: CQ depth %d, the device takes 1 to %d", driver.ErrInvalid, depth, limit)
	}
	d.making.RLock()
	defer d.making.RUnlock()
	if d.gone.Load() {
		return nil, driver.ErrClosed
	}
	id := d.lastCQ.Add(1)
	cq, err := C.gopgas_create_cq(d.hw.context, C.int(depth), C.uint64_t(id), d.hw.channel)
	if cq == nil {
		return nil, wrap(err, fmt.Sprintf("creating a completion queue of %d", depth))
	}
	c := newCompletionQueue(d, id, cq, depth)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cqs[c.id] = c
	return c, nil
}

// CreateQP makes a queue pair in RESET.
func (d *device) CreateQP(_ context.Context, cfg driver.QPConfig) (driver.QP, error) {
	send, ok1 := cfg.SendCQ.(*completionQueue)
	recv, ok2 := cfg.RecvCQ.(*completionQueue)
	cfg.MaxSegments = max(1, cfg.MaxSegments)
	info := d.hw.info()
	switch {
	case !ok1 || !ok2 || send.dev != d || recv.dev != d:
		return nil, fmt.Errorf("%w: the completion queues are not of this device", driver.ErrInvalid)
	case cfg.SendDepth < 1 || cfg.SendDepth > info.MaxQPDepth || cfg.RecvDepth < 0 || cfg.RecvDepth > info.MaxQPDepth:
		return nil, fmt.Errorf("%w: depths %d and %d, the device takes 1 to %d", driver.ErrInvalid, cfg.SendDepth, cfg.RecvDepth, info.MaxQPDepth)
	case cfg.MaxSegments > info.MaxSegments || cfg.MaxInline < 0 || cfg.MaxInline > info.MaxInline:
		return nil, fmt.Errorf("%w: %d segments, %d bytes inline", driver.ErrInvalid, cfg.MaxSegments, cfg.MaxInline)
	}
	d.making.RLock()
	defer d.making.RUnlock()
	defer lockQueues(send, recv)()
	if d.gone.Load() || send.cq == nil || recv.cq == nil {
		return nil, driver.ErrClosed
	}
	hw, _, err := d.hw.createQP(send.cq, recv.cq, cfg)
	if err != nil {
		return nil, err
	}
	q := newQP(d, hw, send, recv, cfg)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.qps[q.num] = q
	send.qps[q.num], recv.qps[q.num] = q, q
	return q, nil
}

// queuePair returns the queue pair of a number, nil if there is none.
func (d *device) queuePair(num uint32) *qp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.qps[num]
}

// queuePairs returns all queue pairs.
func (d *device) queuePairs() []*qp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.qps))
}

// announce reports an event on a goroutine of its own, so that no caller waits
// for OnEvent.
func (d *device) announce(e driver.AsyncEvent) {
	d.bell.Ring()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.onEvent != nil && !d.closed {
		d.goes.Go(func() { d.onEvent(e) })
	}
}
