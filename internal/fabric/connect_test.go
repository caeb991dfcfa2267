//go:build linux

package fabric_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// pastGrace is longer than a fabric waits for word of a death.
const pastGrace = 1200 * time.Millisecond

func TestResolveWhoseContextEndsLeavesTheConnectionToTheNextCall(t *testing.T) {
	steps := [...]string{"connect request", "target's queue pair", "connect response", "origin's queue pair", "region request", "region response"}
	for _, w := range ways() {
		before := descriptors(t)
		plain := w.rig(t)
		plain.use(t, 1)
		want, files := plain.held(), descriptors(t)-before
		for i, step := range steps {
			if w.maps() && i >= 4 {
				continue // the origin finds the region in the target's list
			}
			before := descriptors(t)
			r := w.rig(t)
			cancelAt(t, r, step)
			r.use(t, 7)
			require.Equal(t, want, r.held(), "%s, %s", w.name, step)
			require.Eventually(t, func() bool { return descriptors(t)-before == files }, testwatch.Patience(), time.Millisecond, "%s, %s", w.name, step)
		}
	}
}

// cancelAt ends the first operation's context while it is at a step of connecting.
func cancelAt(t *testing.T, r *countedRig, step string) {
	if strings.HasPrefix(step, "region") { // else the region comes with the connection
		_, err := r.ranks[0].Peer(watched(t), 1)
		require.NoError(t, err)
	}
	reached, release := r.holdAt(t, step)
	ctx, cancel := context.WithCancelCause(watched(t))
	ended := make(chan error, 1)
	go func() {
		_, err := r.ranks[0].Resolve(ctx, 1, "x")
		ended <- err
	}()
	select {
	case <-reached:
	case <-watched(t).Done():
		require.Fail(t, "never came there", step)
	}
	cancel(errMade)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, errMade)
	case <-watched(t).Done():
		require.Fail(t, "did not end with its context", step)
	}
	release()
}

// TestConnectionBringsTheRegionForWhichItIsMade counts the requests of two ranks.
func TestConnectionBringsTheRegionForWhichItIsMade(t *testing.T) {
	wire, sent := loop.New(), []string(nil)
	r := newRigThrough(t, 2, 0, func() driver.Provider { return wire }, func(next fabric.Control) fabric.Control {
		return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
			sent = append(sent, service)
			return next(ctx, rank, service, payload)
		}
	})
	r.region(t, 1, 64, "x")
	r.region(t, 1, 128, "y")
	for _, step := range []struct {
		name string
		size int
		sent []string
	}{{"x", 64, []string{"connect"}}, {"y", 128, []string{"connect", "region"}}, {"x", 64, []string{"connect", "region", "region"}}} {
		remote, err := r.ranks[0].Resolve(watched(t), 1, step.name)
		require.NoError(t, err)
		require.Equal(t, step.size, remote.Len)
		require.Equal(t, step.sent, sent)
	}
}

// TestLooksSendARankOneRequestWhetherItHasLeft holds up the response. No look waits for it.
func TestLooksSendARankOneRequestWhetherItHasLeft(t *testing.T) {
	wire, requests, respond := loop.New(), atomic.Int32{}, make(chan struct{})
	r := newRigThrough(t, 2, 0, func() driver.Provider { return wire }, func(next fabric.Control) fabric.Control {
		return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
			if service == "leaving" {
				requests.Add(1)
				<-respond
			}
			return next(ctx, rank, service, payload)
		}
	})
	for range 100 {
		require.NoError(t, r.ranks[0].Left(1))
	}
	r.ranks[1].Leave(watched(t))
	close(respond)
	require.NoError(t, r.ranks[0].Wait(watched(t), func() bool { return r.ranks[0].Presence(1, "") != nil }))
	require.ErrorIs(t, r.ranks[0].Left(1), fabric.ErrLeft)
	require.EqualValues(t, 1, requests.Load())
}

func TestCanceledResolvesShareOneConnection(t *testing.T) {
	for _, w := range ways() {
		r := w.rig(t)
		reached, release := r.holdAt(t, "connect response")
		for range 10 {
			ctx, cancel := context.WithCancelCause(watched(t))
			ended := make(chan error, 1)
			go func() {
				_, err := r.ranks[0].Resolve(ctx, 1, "x")
				ended <- err
			}()
			<-reached
			cancel(errMade)
			require.ErrorIs(t, <-ended, errMade)
		}
		release()
		r.use(t, 3)
		require.EqualValues(t, 1, r.counters[0].qps.Load(), w.name)
		require.EqualValues(t, 1, r.counters[1].qps.Load(), w.name)
	}
}

func TestPeerReturnsAConnectedPeerUnderAnEndedContext(t *testing.T) {
	r := ways()[0].rig(t)
	r.use(t, 1)
	ctx, cancel := context.WithCancelCause(watched(t))
	cancel(errMade)
	for range 100 { // a choice at random would fail half of them
		_, err := r.ranks[0].Peer(ctx, 1)
		require.NoError(t, err)
	}
}

func TestFailedResolveLeavesNothingAtTheTarget(t *testing.T) {
	t.Parallel() // it sleeps for a second or more
	var rigs []*countedRig
	for _, w := range ways() {
		for _, atOrigin := range []bool{true, false} {
			r := w.rig(t)
			before := r.held()
			hook := &r.counters[1].onRTR
			switch {
			case atOrigin && w.maps():
				hook = &r.counters[0].onMap // by then the queue pairs are connected
			case atOrigin:
				hook = &r.counters[0].onRTR
			}
			failed := fails(hook)
			_, err := r.ranks[0].Resolve(watched(t), 1, "x")
			require.ErrorContains(t, err, errMade.Error())
			require.True(t, failed.Load())
			require.Equal(t, before, r.held(), w.name)
			rigs = append(rigs, r)
		}
	}
	time.Sleep(pastGrace)
	for _, r := range rigs {
		require.NoError(t, r.ranks[1].Gone([]int{0}))
		r.use(t, 5)
		require.EqualValues(t, 1, r.counters[1].qps.Load())
	}
}

// TestUnusedPassiveQueuePairReportsNoDeathOfItsOrigin has an origin leave its attempts
// without a message. Each attempt replaces the one before.
func TestUnusedPassiveQueuePairReportsNoDeathOfItsOrigin(t *testing.T) {
	t.Parallel() // it sleeps for a second or more
	r := overTCP(100 * time.Millisecond).rig(t)
	for range 4 { // whichever side dials
		_, err := r.ranks[1].Serve(t.Context(), 0, "connect", connectPayload(t, "tcp", deadAddress(t)))
		require.NoError(t, err)
		require.EqualValues(t, 1, r.counters[1].qps.Load(), "the earlier one is replaced")
		select {
		case <-r.counters[1].broken:
		case <-watched(t).Done():
			require.Fail(t, "the passive end still waits")
		}
	}
	time.Sleep(pastGrace)
	require.NoError(t, r.ranks[1].Gone([]int{0}))
}

// deadAddress returns the address of a closed queue pair on an open device.
func deadAddress(t *testing.T) []byte {
	c, err := tcp.New(tcp.Config{Listen: "127.0.0.1"}).Open(t.Context(), "", driver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	cq, err := c.CreateCQ(t.Context(), 4)
	require.NoError(t, err)
	qp, err := c.CreateQP(t.Context(), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1})
	require.NoError(t, err)
	address := qp.Address()
	require.NoError(t, qp.Close())
	return address
}

func TestCloseEndsAConnectionAttemptWithoutAWaiter(t *testing.T) {
	r := ways()[0].rig(t)
	reached, release := r.holdAt(t, "connect response")
	defer release()
	ctx, cancel := context.WithCancelCause(watched(t))
	go func() {
		<-reached
		cancel(errMade)
	}()
	_, err := r.ranks[0].Resolve(ctx, 1, "x")
	require.ErrorIs(t, err, errMade)
	require.NoError(t, r.ranks[0].Close())
	_, err = r.ranks[0].Resolve(watched(t), 1, "x")
	require.ErrorIs(t, err, fabric.ErrClosed)
}

func TestConnectionThatLacksDescriptorsReturnsErrExhaustedAndItsPeerLives(t *testing.T) {
	t.Parallel() // it sleeps for a second or more
	r := ways()[1].rig(t)
	r.use(t, 1)
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	y := r.counters[0]
	y.tell(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: y.lastQP.Load(), Err: memory.Descriptors(unix.EMFILE)})
	err = remote.Write(watched(t), 0, []byte{1})
	require.ErrorIs(t, err, driver.ErrExhausted)
	var rank *fabric.RankError
	require.ErrorAs(t, err, &rank)
	require.Zero(t, rank.Rank, "the rank that has none left")
	time.Sleep(pastGrace)
	require.NoError(t, r.ranks[0].Gone([]int{1}))
}
