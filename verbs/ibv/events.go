//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// listen starts the readers of both event channels. They sleep in the
// netpoller, which takes no thread.
func (d *device) listen() error {
	var ids [batch]uint64
	var events [batch]flatEvent
	err := d.read("completion channel", int(d.hw.channel.fd), func() bool {
		found := completionEvents(d.hw.channel, ids[:])
		d.completed(found)
		return len(found) > 0
	})
	if err != nil {
		return err
	}
	return d.read("asynchronous events", int(d.hw.context.async_fd), func() bool {
		found := asyncEvents(d.hw.context, events[:])
		for i := range found {
			d.happened(&found[i])
		}
		return len(found) > 0
	})
}

// read calls drain when fd may be readable, until drain returns false. It reads
// a duplicate of fd: a close ends the goroutine and leaves fd to libibverbs.
func (d *device) read(name string, fd int, drain func() bool) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return wrap(err, "opening the "+name)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return wrap(err, "opening the "+name)
	}
	f := os.NewFile(uintptr(dup), d.hw.name+" "+name)
	d.files = append(d.files, f)
	conn, err := f.SyscallConn()
	if err != nil {
		return wrap(err, "opening the "+name)
	}
	d.goes.Go(func() {
		conn.Read(func(uintptr) bool { //nolint:errcheck // it ends when the file is closed
			for drain() {
			}
			return false
		})
	})
	return nil
}

// completed marks queues as no longer armed, then rings the bell and reports
// the event.
func (d *device) completed(ids []uint64) {
	for _, id := range ids {
		d.mu.Lock()
		c := d.cqs[id]
		d.mu.Unlock()
		if c != nil {
			c.armed.Store(armedNot)
		}
	}
	if len(ids) == 0 {
		return
	}
	d.bell.Ring()
	if d.onEvent != nil && !d.gone.Load() {
		d.onEvent(driver.AsyncEvent{Kind: driver.EventCompletion})
	}
}

// happened handles an asynchronous event. The object that it names may be closed by now.
func (d *device) happened(e *flatEvent) {
	switch e._type {
	case C.IBV_EVENT_QP_FATAL, C.IBV_EVENT_QP_REQ_ERR, C.IBV_EVENT_QP_ACCESS_ERR:
		if q := d.queuePair(uint32(e.object)); q != nil {
			cause := driver.ErrLost
			if e._type != C.IBV_EVENT_QP_FATAL {
				cause = driver.ErrAccess // a mistake of the peer, which may still be connected
			}
			q.fatal(fmt.Errorf("%w: the device reports event %d for the queue pair", cause, e._type))
		}
	case C.IBV_EVENT_CQ_ERR:
		d.mu.Lock()
		c := d.cqs[uint64(e.object)]
		d.mu.Unlock()
		if c != nil {
			c.overrun.Store(true)
			d.bell.Ring()
		}
	case C.IBV_EVENT_DEVICE_FATAL:
		cause := fmt.Errorf("%w: device %s is gone", driver.ErrLost, d.hw.name)
		for _, q := range d.queuePairs() {
			q.fatal(cause)
		}
		d.announce(driver.AsyncEvent{Kind: driver.EventDeviceFatal, Err: cause})
	}
}

// fatal records that the device has moved the queue pair to ERR by itself.
func (q *qp) fatal(cause error) {
	q.mu.Lock()
	known, incarnation := q.state == driver.StateErr || q.state == driver.StateReset, q.incarnation
	if !known {
		q.state = driver.StateErr
	}
	q.mu.Unlock()
	if !known {
		q.breakDown(incarnation, driver.Flushed, cause)
	}
}
