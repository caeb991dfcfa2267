//go:build linux

package shm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Context is one open device: a control memfd, the QPs in it, and the peers
// with mapped memory.
type Context struct {
	cfg     Config
	opts    driver.Options
	pid     int
	token   [2]uint64
	control *memory.Memfd
	doors   *doorbells // in control
	inode   uint64     // of control

	bell      *wait.Bell // shared: peers ring it, CQ.Wait waits on it
	bellInode uint64

	qps []atomic.Pointer[QP] // by block

	importer memory.Importer // of all peers' memory

	mu      sync.Mutex // guards the fields below
	closed  bool
	peers   map[peerID]*peer
	homes   map[homeID]*memory.Imported // of neighbors
	blocks  blockList
	table   mrTable
	nextQP  uint32
	serving bool // the goroutine of serve runs

	kept [][]byte // heap memory that a stopped peer may yet write

	heaps      heaps
	unfinished unfinished

	stalled atomic.Int32 // QPs with requests that wait for the peer
	grace   *time.Timer  // runs from a stall to serve
	ended   atomic.Bool  // closed, for paths that may hold mu
	life    context.Context
	end     context.CancelFunc // ends life
	helpers sync.WaitGroup     // goroutines of this context
	waiting sync.RWMutex       // held for reading while a goroutine sleeps on bell
}

// openContext makes the control memory, through which peers find this device's QPs and registrations.
func openContext(cfg Config, opts driver.Options) (*Context, error) {
	c := &Context{
		cfg:    cfg,
		opts:   opts,
		pid:    os.Getpid(),
		token:  [2]uint64{randomWord(), randomWord()},
		qps:    make([]atomic.Pointer[QP], cfg.MaxQPs),
		peers:  make(map[peerID]*peer),
		homes:  make(map[homeID]*memory.Imported),
		blocks: blockList{limit: cfg.MaxQPs, epochs: make(map[uint32]uint64)},
		table:  mrTable{limit: cfg.MaxMRs},

		unfinished: unfinished{patience: patience},
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.grace = time.AfterFunc(time.Hour, c.startServing)
	c.grace.Stop()
	var err error
	if c.control, err = newControl(cfg, c.token); err != nil {
		return nil, fmt.Errorf("shm: control memory: %w", err)
	}
	c.doors = &headerAt(c.control.Bytes()).doors
	if err := c.findBell(); err != nil {
		return nil, errors.Join(fmt.Errorf("shm: bell: %w", err), c.control.Close())
	}
	return c, nil
}

// findBell takes the rank's bell if peers can ring it, else makes one.
func (c *Context) findBell() (err error) {
	if c.inode, err = memory.Sealed(c.control.FD(), 0, c.control.Size()); err != nil {
		return err
	}
	if c.opts.Bell != nil {
		if fd, offset, ok := c.opts.Bell.Location(); ok {
			c.bell = c.opts.Bell
			c.bellInode, err = memory.Sealed(fd, offset, wait.Size)
			return err
		}
	}
	offset := bellOffset()
	c.bell = wait.NewShared(c.control.Bytes()[offset:offset+wait.Size], c.control.FD(), int64(offset))
	c.bellInode = c.inode
	if c.opts.Bell != nil {
		c.helpers.Go(c.relay)
	}
	return nil
}

// relay passes the peers' rings on to a bell that they cannot reach. It costs a
// thread, and the peers a system call for each ring. Ranks avoid it with a
// shared bell.
func (c *Context) relay() {
	_ = c.bell.Wait(c.life, func() bool { // ends with life
		c.opts.Bell.Ring()
		return false
	})
}

// ring wakes the waiters of this process.
func (c *Context) ring() {
	c.bell.Ring()
	if c.opts.Bell != nil && c.opts.Bell != c.bell {
		c.opts.Bell.Ring()
	}
}

// Info describes the device.
func (c *Context) Info() driver.DeviceInfo { return deviceInfo() }

// progress makes the QPs with a rung doorbell look at their peers.
func (c *Context) progress() {
	c.doors.take(func(i uint32) {
		if int(i) >= len(c.qps) {
			return
		}
		if q := c.qps[i].Load(); q != nil {
			q.look()
		}
	})
}

// event reports to the rank from a goroutine of its own, since the caller may hold
// locks.
func (c *Context) event(ev driver.AsyncEvent) {
	if c.opts.OnEvent == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.helpers.Go(func() { c.opts.OnEvent(ev) })
	}
}

// Close ends all QPs and replaces all mappings of peers' memory. It must not be
// called from OnEvent, since it waits for OnEvent to return.
func (c *Context) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.ended.Store(true)
	c.mu.Unlock()

	var errs []error
	for i := range c.qps {
		if q := c.qps[i].Load(); q != nil {
			errs = append(errs, q.Close())
		}
	}
	c.grace.Stop()
	for _, p := range c.peers {
		p.death.stop()
	}
	c.end()
	c.ring() // CQ.Wait looks at ended
	c.waiting.Lock()
	defer c.waiting.Unlock()
	c.helpers.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.peers {
		errs = append(errs, p.close())
	}
	for _, home := range c.homes {
		errs = append(errs, home.Close())
	}
	return errors.Join(append(errs, c.control.Close())...)
}

// randomWord returns a random word that is not zero: zero words mean "nothing".
func randomWord() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(binary.NativeEndian.Uint64(b[:]), 1)
}

// blockList hands out QP blocks. Precondition of its methods: Context.mu is held.
type blockList struct {
	limit  int
	fresh  uint32   // blocks from here on were never used
	free   []uint32 // read to the end by their peers
	unread []uint32 // closed with messages that the peer has not taken, oldest first
	epochs map[uint32]uint64
}

// take prefers blocks that no peer reads: a peer may still read the last
// messages of a closed QP.
func (l *blockList) take() (index uint32, epoch uint64, err error) {
	switch {
	case len(l.free) > 0:
		index, l.free = l.free[0], l.free[1:]
	case int(l.fresh) < l.limit:
		index = l.fresh
		l.fresh++
	case len(l.unread) > 0:
		index, l.unread = l.unread[0], l.unread[1:]
	default:
		return 0, 0, fmt.Errorf("shm: %w: all %d QPs of the device are in use", driver.ErrUnsupported, l.limit)
	}
	return index, l.epochs[index] + 1, nil
}

func (l *blockList) giveBack(index uint32, epoch uint64, read bool) {
	l.epochs[index] = epoch
	if read {
		l.free = append(l.free, index)
	} else {
		l.unread = append(l.unread, index)
	}
}
