package bootstrap

import (
	"context"
	"net"
	"time"
)

// start bounds the time in which all ranks join. It begins with the first join that
// names a bound. Of several bounds the one that ends first counts.
type start struct {
	wait    time.Duration // the bound that counts; 0: none
	end     time.Time
	timer   *time.Timer
	expired bool // ranks are missing
}

// stop ends the start timeout.
func (s *start) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// bound takes the bound of a rank that has joined. The caller holds mu.
func (s *Server) bound(wait time.Duration) {
	if len(s.ranksIn(absent)) == 0 {
		s.start.stop()
		return
	}
	end := time.Now().Add(wait)
	if wait == 0 || s.start.wait != 0 && end.After(s.start.end) {
		return
	}
	s.start.stop()
	s.start.wait, s.start.end = wait, end
	s.start.timer = time.AfterFunc(wait, s.expire)
}

// expire ends a start that lacks ranks. Exchanges with them fail, now and later.
func (s *Server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.ranksIn(absent)
	if s.closed || len(gone) == 0 || time.Now().Before(s.start.end) {
		return
	}
	s.start.expired = true
	for _, r := range gone {
		s.members[r].state = missing
	}
	for _, r := range gone {
		s.failExchanges(r)
	}
}

// ranksIn returns the ranks in a state. The caller holds mu.
func (s *Server) ranksIn(in state) (ranks []int) {
	for r := range s.members {
		if s.members[r].state == in {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// host makes the rendezvous of env in this process, which joins it as rank 0, and serves
// it at listeners.
func host(ctx context.Context, env Env, wait time.Duration, listeners []net.Listener) (*Conn, *Server, error) {
	s := NewServer(env.Size, env.Secret, Hooks{})
	s.hosted = true
	mine, theirs := net.Pipe()
	s.Attach(theirs)
	c, err := NewConn(ctx, mine, env.Secret, Joining{Rank: 0, Size: env.Size, Wait: wait, TLS: env.TLS})
	if err != nil {
		closeAll(listeners)
		s.Close() //nolint:errcheck // never fails
		return nil, nil, err
	}
	for _, l := range listeners {
		s.wg.Go(func() { s.Serve(context.Background(), l) }) //nolint:errcheck // ends with Close
	}
	return c, s, nil
}

// Drain waits until all ranks that joined have left or are dead and their connections
// have ended. If ctx ends first, it returns the ranks that have not.
func (s *Server) Drain(ctx context.Context) (busy []int) {
	for {
		s.mu.Lock()
		busy = s.ranksIn(joined)
		open := len(s.conns) - len(s.unproven)
		if s.dropped == nil {
			s.dropped = make(chan struct{})
		}
		dropped := s.dropped
		s.mu.Unlock()
		if open == 0 && len(busy) == 0 {
			return nil
		}
		select {
		case <-dropped:
		case <-ctx.Done():
			return busy
		}
	}
}
