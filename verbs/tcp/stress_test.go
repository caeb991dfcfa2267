//go:build linux

package tcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

const (
	stressArea = 3 << 20
	stressTime = 3 * time.Second
)

// An end is a queue pair with a completion queue and memory of its own.
type end struct {
	n   *node
	cq  driver.CQ
	q   driver.QP
	mem []byte
	mr  driver.MR
}

func newEnd(n *node) *end {
	e := &end{n: n, mem: alignedBytes(stressArea)}
	var err error
	e.cq, err = n.CreateCQ(context.Background(), 1024)
	require.NoError(n.t, err)
	return e
}

// fresh makes an end with a new queue pair and region.
func (e *end) fresh() {
	ctx := context.Background()
	if e.q != nil {
		e.q.Close()  //nolint:errcheck // always nil
		e.mr.Close() //nolint:errcheck // always nil
	}
	var err error
	e.mr, err = e.n.RegMR(ctx, driver.Memory{Bytes: e.mem}, driver.AllAccess)
	require.NoError(e.n.t, err)
	e.q, err = e.n.CreateQP(ctx, driver.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 32, RecvDepth: 8, MaxSegments: 4, MaxInline: maxInline})
	require.NoError(e.n.t, err)
	require.NoError(e.n.t, e.q.Modify(ctx, driver.StateInit, driver.Attr{}))
	var wc [64]driver.Completion
	for n := 1; n > 0; {
		n, _ = e.cq.Poll(wc[:])
	}
}

func (e *end) connect(peer []byte) error {
	ctx := context.Background()
	return errors.Join(e.q.Modify(ctx, driver.StateRTR, driver.Attr{Peer: peer}), e.q.Modify(ctx, driver.StateRTS, driver.Attr{}))
}

// done waits for the completion of a request.
func (e *end) done(id uint64) error {
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	var wc [1]driver.Completion
	for {
		k, err := e.cq.Poll(wc[:])
		switch {
		case err != nil:
			return err
		case k == 1 && wc[0].ID == id && wc[0].Status != driver.Success:
			return fmt.Errorf("request ended with %v: %w", wc[0].Status, wc[0].Err)
		case k == 1 && wc[0].ID == id:
			return nil
		case k == 0:
			if err := e.cq.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

// writes writes bytes, reads them back and compares.
func (e *end) writes(rnd *rand.Rand, peer *end) error {
	src := bytes.Repeat([]byte{byte(rnd.Uint32())}, someLength(rnd))
	for i := 0; i < len(src); i += 1 + rnd.IntN(5000) {
		src[i] = byte(rnd.Uint32())
	}
	want, dst, off := bytes.Clone(src), make([]byte, len(src)), rnd.IntN(stressArea-len(src)+1)
	at := driver.RemoteAddr{Addr: peer.mr.Addr() + uint64(off), RKey: peer.mr.RKey()}
	write := driver.WorkRequest{ID: rnd.Uint64(), Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: at}
	if len(src) <= maxInline && rnd.IntN(2) == 0 {
		write.Flags |= driver.Inline
	}
	if _, err := e.q.PostSend([]driver.WorkRequest{write}); err != nil {
		return err
	}
	if write.Flags&driver.Inline != 0 {
		clear(src)
	}
	read := driver.WorkRequest{ID: write.ID + 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: at}
	if _, err := e.q.PostSend([]driver.WorkRequest{read}); err != nil {
		return err
	}
	if err := errors.Join(e.done(write.ID), e.done(read.ID)); err != nil {
		return fmt.Errorf("%d bytes: %w", len(want), err)
	}
	if !bytes.Equal(want, dst) {
		return fmt.Errorf("%d bytes are not what was written", len(want))
	}
	return nil
}

func someLength(rnd *rand.Rand) int {
	return []int{1, 8, 100, 3000, 20000, 70000, 300000, 1 << 20, 2500000}[rnd.IntN(9)]
}

// breaks ends a pair with requests under way, in a way drawn at random.
func (e *end) breaks(rnd *rand.Rand, peer *end) {
	ctx := context.Background()
	long := make([]byte, someLength(rnd))
	at := driver.RemoteAddr{Addr: peer.mr.Addr(), RKey: peer.mr.RKey()}
	post := func(op driver.Opcode) {
		e.q.PostSend([]driver.WorkRequest{{ID: 1, Op: op, Flags: driver.Signaled, Local: segment(long), Remote: at}}) //nolint:errcheck // any end will do
	}
	ops := [...]driver.Opcode{driver.OpWrite, driver.OpRead}
	for range rnd.IntN(4) {
		post(ops[rnd.IntN(2)])
	}
	if rnd.IntN(2) == 0 {
		time.Sleep(time.Duration(rnd.IntN(2000)) * time.Microsecond)
	}
	switch rnd.IntN(7) {
	case 0:
		e.q.Modify(ctx, driver.StateReset, driver.Attr{}) //nolint:errcheck // as above
	case 1:
		e.q.Modify(ctx, driver.StateErr, driver.Attr{}) //nolint:errcheck // as above
	case 2:
		e.q.Close() //nolint:errcheck // always nil
	case 3:
		at.RKey.Lo++ // is refused
		post(ops[rnd.IntN(2)])
	case 4:
		e.q.(*qp).Cancel(1)
	case 5:
		peer.mr.Close()      //nolint:errcheck // always nil
		for i := range 100 { // the memory is the caller's again: the race detector would report other accesses
			peer.mem[i*stressArea/100] = 1
		}
	case 6:
		peer.q.Close() //nolint:errcheck // always nil
		e.q.Close()    //nolint:errcheck // always nil
	}
	if rnd.IntN(2) == 0 {
		e.q.Modify(ctx, driver.StateReset, driver.Attr{}) //nolint:errcheck // it may be closed
		clear(long)
	}
}

// comesAndGoes connects a pair repeatedly, in any order, and breaks it.
func comesAndGoes(rnd *rand.Rand, x, y *end, until time.Time) error {
	for time.Now().Before(until) {
		x.fresh()
		y.fresh()
		if rnd.IntN(2) == 0 {
			x, y = y, x
		}
		addresses := [2][]byte{x.q.Address(), y.q.Address()}
		if err := x.connect(addresses[1]); err != nil {
			return err
		}
		switch rnd.IntN(6) {
		case 0:
			time.Sleep(time.Duration(rnd.Int64N(int64(100 * time.Millisecond))))
		case 1:
			time.Sleep(time.Duration(rnd.Int64N(int64(time.Millisecond))))
		case 2: // before the peer is told
			x.breaks(rnd, y)
			continue
		}
		if err := y.connect(addresses[0]); err != nil {
			return err
		}
		for range rnd.IntN(6) {
			if err := x.writes(rnd, y); err != nil {
				return err
			}
			x, y = y, x
		}
		x.breaks(rnd, y)
	}
	return nil
}

func staysOn(rnd *rand.Rand, x, y *end, until time.Time) error {
	x.fresh()
	y.fresh()
	if err := errors.Join(x.connect(y.q.Address()), y.connect(x.q.Address())); err != nil {
		return err
	}
	for time.Now().Before(until) {
		if err := x.writes(rnd, y); err != nil {
			return fmt.Errorf("an undisturbed pair: %w", err)
		}
		x, y = y, x
	}
	return nil
}

// comingTime is enough for hundreds of pairs that come and go.
func comingTime() time.Duration {
	return time.Duration(testwatch.ShortOr(500, 10_000)) * time.Millisecond
}

// TestPairsThatComeAndGo connects four pairs between each two of three devices, which
// share connections. One pair stays, three come and go. In the end no connection is
// left.
func TestPairsThatComeAndGo(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %#x", seed)
	var nodes []*node
	for _, streams := range []int{1, DefaultStreams, 100} {
		cfg := Config{Listen: "127.0.0.1", PeerTimeout: 10 * time.Second, Streams: streams}
		nodes = append(nodes, newNodeWith(t, cfg, 64, 0))
	}
	until := time.Now().Add(comingTime())
	var all sync.WaitGroup
	for k := range uint64(12) {
		i := int(k % 3)
		x, y := newEnd(nodes[i]), newEnd(nodes[(i+1)%3])
		rnd := rand.New(rand.NewPCG(seed, k))
		goes := comesAndGoes
		if k < 3 {
			goes = staysOn
		}
		all.Go(func() {
			if err := goes(rnd, x, y, until); err != nil {
				t.Errorf("pair %d: %v", k, err)
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		for _, q := range n.queuePairs() {
			q.Close() //nolint:errcheck // always nil
		}
	}
	for _, n := range nodes {
		eventually(t, "all connections to be closed", func() bool {
			n.token.Lock()
			defer n.token.Unlock()
			for _, l := range n.links {
				if l != nil {
					return false
				}
			}
			return len(n.paths) == 0 && len(n.strangers) == 0
		})
	}
}
