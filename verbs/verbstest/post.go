package verbstest

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// post posts all of wrs. While the queue is full it polls, and keeps those
// completions for sent.
func (s *side) post(wrs ...verbs.WorkRequest) {
	s.t.Helper()
	s.posts.Add(1)
	for len(wrs) > 0 {
		n, err := s.qp.PostSend(wrs)
		wrs = wrs[n:]
		if errors.Is(err, driver.ErrQueueFull) {
			wc, err := next(s.scq)
			require.NoError(s.t, err)
			s.early = append(s.early, wc)
			continue
		}
		require.NoError(s.t, err)
	}
}

// postRecv posts receives, all of which must fit.
func (s *side) postRecv(wrs ...verbs.RecvRequest) {
	s.t.Helper()
	for len(wrs) > 0 {
		n, err := s.qp.PostRecv(wrs)
		wrs = wrs[n:]
		if errors.Is(err, driver.ErrQueueFull) && n > 0 {
			continue // a wrapper may take fewer than fit
		}
		require.NoError(s.t, err)
	}
}

// sent returns the next completion of the send CQ.
func (s *side) sent() verbs.Completion {
	s.t.Helper()
	if len(s.early) > 0 {
		wc := s.early[0]
		s.early = s.early[1:]
		return wc
	}
	return s.completion(s.scq)
}

// received returns the next completion of the receive CQ.
func (s *side) received() verbs.Completion {
	s.t.Helper()
	return s.completion(s.rcq)
}

func (s *side) completion(cq *verbs.CQ) verbs.Completion {
	s.t.Helper()
	wc, err := next(cq)
	require.NoError(s.t, err)
	return wc
}

// next waits for one completion, no longer than the watchdog allows. It may
// be called from any goroutine.
func next(cq *verbs.CQ) (verbs.Completion, error) {
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	var wc [1]verbs.Completion
	for {
		n, err := cq.Poll(wc[:])
		if n == 1 || err != nil {
			return wc[0], err
		}
		if err := cq.Wait(ctx); err != nil {
			return wc[0], err
		}
	}
}

// do posts wr, signaled, and wants it to succeed.
func (s *side) do(wr verbs.WorkRequest) verbs.Completion {
	s.t.Helper()
	wr.Flags |= verbs.Signaled
	s.post(wr)
	wc := s.sent()
	require.Equal(s.t, verbs.Success, wc.Status, "%v: %v", wr.Op, wc.Err)
	require.Equal(s.t, wr.ID, wc.ID)
	return wc
}

// flush returns once the peer has applied everything posted so far: by a READ
// behind it, as on any reliable connection.
func (s *side) flush(peer *side) {
	s.t.Helper()
	last := s.cfg.memory - 8
	s.do(verbs.WorkRequest{ID: 1 << 60, Op: verbs.OpRead, Local: segs(s.at(last, 8)), Remote: peer.mr.Remote(last)})
}

// doOn is do for goroutines: on a queue pair and CQ of their own, with errors
// returned.
func doOn(qp *verbs.QP, cq *verbs.CQ, wr verbs.WorkRequest) error {
	wr.Flags |= verbs.Signaled
	for {
		n, err := qp.PostSend([]verbs.WorkRequest{wr})
		if n == 1 {
			break
		}
		if !errors.Is(err, driver.ErrQueueFull) {
			return err
		}
	}
	wc, err := next(cq)
	if err == nil && wc.Status != verbs.Success {
		err = &failure{wr.Op, wc}
	}
	return err
}

// failure holds the completion of a request that did not succeed.
type failure struct {
	op verbs.Opcode
	wc verbs.Completion
}

func (f *failure) Error() string {
	return fmt.Sprintf("%v %d: %v: %v", f.op, f.wc.ID, f.wc.Status, f.wc.Err)
}

// expect turns the failure that a test provoked into success.
func expect(status verbs.Status, err error) error {
	var f *failure
	if errors.As(err, &f) && f.wc.Status == status {
		return nil
	}
	return fmt.Errorf("want %v, got: %w", status, err)
}

func segs(s ...verbs.Segment) []verbs.Segment { return s }

// postPatiently posts one request while another goroutine polls.
func postPatiently(t *testing.T, qp *verbs.QP, wr verbs.WorkRequest) {
	t.Helper()
	for end := time.Now().Add(testwatch.Patience()); ; goruntime.Gosched() {
		n, err := qp.PostSend([]verbs.WorkRequest{wr})
		if n == 1 {
			return
		}
		require.ErrorIs(t, err, driver.ErrQueueFull)
		require.True(t, time.Now().Before(end), "the queue stays full")
	}
}
