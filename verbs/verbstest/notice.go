package verbstest

import (
	"context"

	"github.com/gopgas/gopgas/verbs"
)

// If writes are silent, a sleeping rank learns of them by a notice behind them.
// The notice is a solicited WRITE_WITH_IMM, for which the rank has posted a
// receive and armed its queue. On other devices all of this does nothing.

func (s *side) silent() bool { return s.ctx.Info().Writes.Silent }

// noticeReceives is the number of receives that side keeps posted, so that a
// notice seldom waits for one.
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

// takeNotices keeps receives posted and the queue armed. A notice that comes
// after arming rings the bell; takeNotices polls for earlier ones.
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

// tell sends the notice, and returns when the peer's device has taken it.
func (s *side) tell(peer *side) {
	s.t.Helper()
	if peer.silent() {
		s.do(verbs.WorkRequest{Op: verbs.OpWriteImm, Flags: verbs.Solicited, Remote: peer.mr.Remote(0)})
	}
}
