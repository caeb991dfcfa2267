package verbstest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
)

// waitingCases lists the promises about goroutines that sleep until a device rings.
func waitingCases() []testCase {
	return []testCase{
		{"WaitReturnsWhenACompletionCame", waitCompletion},
		{"WaitReturnsAtOnceWhenThereIsOne", waitAtOnce},
		{"WaitEndsWithItsContext", waitCanceled},
		{"ParkedOwnerHearsOfARemoteWrite", bellOnWrite},
		{"ParkedOwnerHearsOfARemoteAtomic", bellOnAtomic},
		{"NoWakeUpIsLost", pingPong},
	}
}

// parked returns once a goroutine has gone to sleep on s's bell. before is the number of such
// sleeps so far. Some providers let goroutines sleep elsewhere: parked returns after a moment.
func (s *side) parked(before uint64) {
	for range 200 {
		if s.bell.Parks() > before {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// waitCompletion posts the message only once the receiver sleeps.
func waitCompletion(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	b.postRecv(verbs.RecvRequest{ID: 3, Local: segs(b.at(0, 8))})
	var g errgroup.Group
	parks := b.bell.Parks()
	g.Go(func() error {
		wc, err := next(b.rcq)
		if err == nil && wc.ID != 3 {
			err = fmt.Errorf("got %+v", wc)
		}
		return err
	})
	b.parked(parks)
	a.post(verbs.WorkRequest{Op: verbs.OpSend, Local: segs(a.at(0, 8))})
	require.NoError(t, g.Wait())
}

// waitAtOnce waits for a completion that has probably come already: no ring follows it.
func waitAtOnce(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for range 2 {
		a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
	}
	require.Equal(t, verbs.Success, a.sent().Status)
	require.NoError(t, a.scq.Wait(testwatch.Context(t)))
	require.Equal(t, verbs.Success, a.sent().Status)
	_, err := a.scq.Poll(make([]verbs.Completion, 1))
	require.NoError(t, err)
}

// waitCanceled ends the context of a goroutine that sleeps, and waits under a context that has
// ended.
func waitCanceled(t *testing.T, h Harness) {
	a, _ := newPair(t, h)
	cause := errors.New("the caller changed its mind")
	ctx, cancel := context.WithCancelCause(testwatch.Context(t))
	var g errgroup.Group
	parks := a.bell.Parks()
	g.Go(func() error {
		for {
			if err := a.rcq.Wait(ctx); err != nil {
				return err
			}
		}
	})
	a.parked(parks)
	cancel(cause)
	require.ErrorIs(t, g.Wait(), cause)
	require.ErrorIs(t, a.rcq.Wait(ctx), cause, "a context that has ended already")
}

// waitForWord has a goroutine wait until the word at offset has the value want. It calls
// change, which has the peer write that value, once the goroutine sleeps.
func (s *side) waitForWord(offset int, want uint64, change func()) {
	s.t.Helper()
	var g errgroup.Group
	ctx, parks := testwatch.Context(s.t), s.bell.Parks()
	word := word64(s.bytes(offset, 8))
	g.Go(func() error { return s.hear(ctx, func() bool { return word.Load() == want }) })
	s.parked(parks)
	change()
	require.NoError(s.t, g.Wait())
}

// bellOnWrite has the target sleep until a WRITE has changed a word. tell rings on devices whose
// WRITEs are silent.
func bellOnWrite(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range uint64(5) {
		b.waitForWord(64, i+1, func() {
			put64(a.bytes(0, 8), i+1)
			a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)})
			a.tell(b)
		})
	}
}

// bellOnAtomic is bellOnWrite for a word that an atomic changes.
func bellOnAtomic(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range uint64(5) {
		b.waitForWord(64, i+1, func() {
			a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(64)})
			a.tell(b)
		})
	}
}

// pingPong has the two sides write to each other in turn, each after it has heard the peer. A wake-
// up that is lost stops both, and the watchdog ends the case.
func pingPong(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	rounds := uint64(h.rounds(1000))
	var played atomic.Uint64
	play := func(me, peer *side, first bool) error {
		word := word64(me.bytes(64, 8))
		source, to := segment(t, me.mr, 0, 8), peer.mr.Remote(64)
		ctx, cancel := testwatch.With(context.Background(), played.Load)
		defer cancel()
		for i := range rounds {
			played.Add(1)
			if !first {
				if err := me.hear(ctx, func() bool { return word.Load() == i+1 }); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
			put64(source.Mem, i+1)
			write := verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(source), Remote: to}
			if peer.silent() {
				write.Op, write.Flags = verbs.OpWriteImm, verbs.Solicited
			}
			if err := doOn(me.qp, me.scq, write); err != nil {
				return err
			}
			if first {
				if err := me.hear(ctx, func() bool { return word.Load() == i+1 }); err != nil {
					return fmt.Errorf("round %d: %w", i, err)
				}
			}
		}
		return nil
	}
	var g errgroup.Group
	g.Go(func() error { return play(a, b, true) })
	g.Go(func() error { return play(b, a, false) })
	require.NoError(t, g.Wait())
}
