package verbstest

import (
	"context"

	"github.com/gopgas/gopgas/verbs"
)

// Where writes are silent, a rank that sleeps hears of them by a notice behind
// them: a WRITE_WITH_IMM that was solicited, for which it has posted a receive
// and armed its queue. Elsewhere all of this does nothing.

func (s *side) silent() bool { return s.ctx.Info().SilentWrites }

// noticeReceives is how many receives are kept posted, so that a notice seldom
// waits for one.
const noticeReceives = 4

// hear waits on s's bell until ready.
func (s *side) hear(ctx context.Context, ready func() bool) error {
	if !s.silent() {
		return s.bell.Wait(ctx, ready)
	}
	var failed error
	err := s.bell.Wait(ctx, func() bool {
		failed = s.takeNotices()
		return failed != nil || ready()
	})
	if failed != nil {
		return failed
	}
	return err
}

// takeNotices keeps receives posted and the queue armed. What comes after
// arming rings the bell; what came before is polled.
func (s *side) takeNotices() error {
	for ; s.offered < noticeReceives; s.offered++ {
		if _, err := s.qp.PostRecv([]verbs.RecvRequest{{}}); err != nil {
			return err
		}
	}
	if err := s.rcq.Arm(true); err != nil {
		return err
	}
	var wc [1]verbs.Completion
	n, err := s.rcq.Poll(wc[:])
	s.offered -= n
	return err
}

// tell sends the notice, and returns when it was taken.
func (s *side) tell(peer *side) {
	s.t.Helper()
	if peer.silent() {
		s.do(verbs.WorkRequest{Op: verbs.OpWriteImm, Flags: verbs.Solicited, Remote: peer.mr.Remote(0)})
	}
}
