package fabric_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A recorder changes the properties that a device reports, and records all posts to it.
type recorder struct {
	driver.Provider
	change func(*driver.DeviceInfo) // nil changes nothing
	full   atomic.Bool              // its send queues take nothing
	onRead func()                   // called ahead of each READ, nil calls nothing
	closes func() error             // called ahead of the end of each registration, nil calls nothing
	mu     sync.Mutex
	posts  []string
}

func (r *recorder) Open(ctx context.Context, name string, opts driver.Options) (driver.Context, error) {
	c, err := r.Provider.Open(ctx, name, opts)
	return recordedContext{c, r}, err
}

// take returns the posts since the last call, and forgets them. It parts calls of PostSend
// by a bar.
func (r *recorder) take() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	posts := strings.Join(r.posts, " | ")
	r.posts = nil
	return posts
}

func (r *recorder) record(wrs []driver.WorkRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for i := range wrs {
		names = append(names, describe(&wrs[i]))
	}
	r.posts = append(r.posts, strings.Join(names, " "))
}

// symbols name the operations of work requests, and flags their flags by bit.
var (
	symbols = map[driver.Opcode]string{driver.OpWrite: "W", driver.OpWriteImm: "I", driver.OpSend: "Q", driver.OpFetchAdd: "F", driver.OpAtomic: "A"}
	flags   = []string{"s", "i", "f", "w", "a"}
)

// describe names a request: its operation, its length and its flags.
func describe(wr *driver.WorkRequest) string {
	s := fmt.Sprintf("%s%d", symbols[wr.Op], wr.Length())
	for i, name := range flags {
		if wr.Flags&(1<<i) != 0 {
			s += name
		}
	}
	return s
}

type recordedContext struct {
	driver.Context
	r *recorder
}

func (c recordedContext) Info() driver.DeviceInfo {
	info := c.Context.Info()
	if c.r.change != nil {
		c.r.change(&info)
	}
	return info
}

func (c recordedContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	qp, err := c.Context.CreateQP(ctx, cfg)
	recorded := recordedQP{QP: qp, r: c.r}
	if m, ok := qp.(driver.Mapper); ok {
		return recordedMapper{recorded, m}, err
	}
	return recorded, err
}

func (c recordedContext) RegMR(ctx context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	mr, err := c.Context.RegMR(ctx, mem, access)
	return recordedMR{mr, c.r}, err
}

type recordedMR struct {
	driver.MR
	r *recorder
}

func (m recordedMR) Close() error {
	var err error
	if m.r.closes != nil {
		err = m.r.closes()
	}
	return errors.Join(err, m.MR.Close())
}

type recordedQP struct {
	driver.QP
	r *recorder
}

func (q recordedQP) PostSend(wrs []driver.WorkRequest) (int, error) {
	if q.r.full.Load() {
		return 0, driver.ErrQueueFull
	}
	q.r.record(wrs)
	if q.r.onRead != nil && slices.ContainsFunc(wrs, func(wr driver.WorkRequest) bool { return wr.Op == driver.OpRead }) {
		q.r.onRead()
	}
	return q.QP.PostSend(wrs)
}

func (q recordedQP) Cancel(id uint64) { q.QP.(driver.Canceler).Cancel(id) }

type recordedMapper struct {
	recordedQP
	driver.Mapper
}
