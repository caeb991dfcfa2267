//go:build linux

package shm_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

// scribble writes nonsense over some parts of a control memfd until stop is
// closed.
func scribble(stop <-chan struct{}, control []byte, seed uint64, parts ...int) {
	rng := rand.New(rand.NewPCG(seed, 7))
	for {
		select {
		case <-stop:
			return
		default:
			nonsense(rng, control, parts...)
		}
	}
}

// nonsense writes 64 words over some parts of a control memfd. It spares two parts that would
// only make the test slow. Nonsense in the bell keeps waiters asleep. Nonsense in the busy word
// makes a peer's Close wait five seconds.
func nonsense(rng *rand.Rand, control []byte, parts ...int) {
	for range 64 {
		offset := shm.SomeWord(rng, parts[rng.IntN(len(parts))])
		value := rng.Uint64()
		switch rng.IntN(4) {
		case 0:
			value %= 64
		case 1:
			value = atomics.Word64(control[offset:offset+8]).Load() + value%16 - 8
		case 2:
			value = value%(1<<20)<<32 | uint64(1+rng.IntN(3)) // like a record
		}
		atomics.Word64(control[offset : offset+8]).Store(value)
	}
}

func TestScribblingPeerCausesOnlyErrors(t *testing.T) {
	all := []int{}
	for part := range shm.Parts {
		all = append(all, part)
	}
	sum := map[driver.Status]int{}
	for seed, parts := range [][]int{all, {shm.DoorbellWords}, {shm.TableWords}, {shm.ConnectionWords}, {shm.CounterWords},
		{shm.LengthWords}, {shm.RingWords}, {shm.LengthWords, shm.RingWords, shm.CounterWords}} {
		a, b := newPair(t, sideConfig{provider: shm.Config{MaxQPs: 2, MaxMRs: 8, RingBytes: 4096}})
		other, _ := newPair(t, sideConfig{}) // the nonsense must not affect it
		rng := rand.New(rand.NewPCG(uint64(seed), 8))
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { scribble(stop, shm.Control(b.device), uint64(seed), parts...) })
		failures := map[driver.Status]int{}
		for range 300 {
			nonsense(rng, shm.Control(b.device), parts...) // on one core, the scribbler may write in few rounds
			exercise(t, a, b, rng, failures)
			exercise(t, b, a, rng, failures)
			reconnect(a, b)
			reconnect(b, a)
		}
		close(stop)
		wg.Wait()
		t.Logf("%v: %v", parts, failures)
		for status, n := range failures {
			sum[status] += n
		}
		other.nothing()
		other.modify(driver.StateErr, nil)
	}
	require.Positive(t, sum[driver.RemoteAccess], "no request met a bad table")
	require.Positive(t, sum[driver.RetryExceeded], "no request met a bad connection word")
	require.Positive(t, sum[driver.GeneralError], "no request met a bad ring or counter")
}

// exercise posts requests of all kinds and polls.
func exercise(t *testing.T, from, to *side, rng *rand.Rand, failures map[driver.Status]int) {
	big := make([]byte, 1+rng.IntN(9000))
	_, _ = to.qp.PostRecv([]driver.RecvRequest{{ID: 1, Local: segments(make([]byte, 10_000))}, {ID: 2, Local: segments(big)}})
	_, _ = from.qp.PostSend([]driver.WorkRequest{
		write(to.at(uint64(rng.IntN(2000))), big[:1+rng.IntN(len(big))]),
		read(to.at(8), word(0)),
		{Op: driver.OpFetchAdd, Operand: 1, Remote: to.at(64), Local: segments(word(0))},
		{Op: driver.OpAtomic, Atomic: driver.AtomicXor, Width: 2, Operand: 1, Remote: to.at(66)},
		send(1, big),
		{ID: 2, Op: driver.OpWriteImm, Flags: driver.Signaled, Local: segments(word(1)), Remote: to.at(0)},
		send(3, word(1)),
	})
	wc := make([]driver.Completion, 16)
	for range 4 {
		for _, s := range []*side{from, to} {
			n, err := s.cq.Poll(wc)
			require.NoError(t, err)
			for _, c := range wc[:n] {
				if c.Status != driver.Success {
					failures[c.Status]++
				}
			}
		}
	}
}

// reconnect takes s back to RTS if it still can.
func reconnect(s, peer *side) {
	ctx := context.Background()
	_ = s.qp.Modify(ctx, driver.StateReset, driver.Attr{})
	_ = s.qp.Modify(ctx, driver.StateInit, driver.Attr{})
	_ = s.qp.Modify(ctx, driver.StateRTR, driver.Attr{Peer: peer.qp.Address()}) // fails when nonce or token are gone
	_ = s.qp.Modify(ctx, driver.StateRTS, driver.Attr{})
}

func TestCloseDoesNotWaitForeverForAPeerStoppedWithinARequest(t *testing.T) {
	t.Parallel()
	a, b := newPair(t, sideConfig{})
	b.do(write(a.at(0), word(1)))
	shm.SetBusy(b.qp, 1)
	require.ErrorContains(t, a.mr.Close(), "stopped")
	shm.SetBusy(b.qp, 2)
}

// TestMRCloseWaitsForARequestOfAnEndedConnection has the peer execute a request while this side ends the
// connection and does not wait for the request.
func TestMRCloseWaitsForARequestOfAnEndedConnection(t *testing.T) {
	ctx := testwatch.Context(t)
	hasty, cancel := context.WithCancel(ctx)
	cancel()
	a, b := newPair(t, sideConfig{shared: true})
	b.do(write(a.at(128), word(1)))
	shm.SetBusy(b.qp, 1)
	require.ErrorIs(t, a.qp.Modify(hasty, driver.StateReset, driver.Attr{}), context.Canceled)
	closed := make(chan error, 1)
	before := a.bell.Parks()
	go func() { closed <- a.mr.Close() }()
	for a.bell.Parks() == before && ctx.Err() == nil {
		require.Empty(t, closed)
		time.Sleep(time.Millisecond)
	}
	shm.SetBusy(b.qp, 2)
	a.bell.Ring()
	require.NoError(t, <-closed)
}

func TestMutatedAddressesAreRefused(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{})
	a.modify(driver.StateInit, nil)
	good := b.qp.Address()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		bad := append([]byte(nil), good...)
		for range 1 + rng.IntN(3) {
			bad[8+rng.IntN(len(bad)-8)] ^= 1 << rng.IntN(8)
		}
		if string(bad) == string(good) {
			continue
		}
		if err := a.qp.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: bad}); err == nil {
			a.modify(driver.StateReset, nil) // such as the index of another doorbell
			a.modify(driver.StateInit, nil)
		}
	}
	for _, bad := range [][]byte{nil, good[:1], good[:len(good)-1], append(good, 0)} {
		require.ErrorIs(t, a.qp.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: bad}), driver.ErrInvalid)
	}
	a.modify(driver.StateRTR, good)
}
