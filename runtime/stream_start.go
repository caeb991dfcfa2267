package runtime

import (
	"context"
	"time"

	"github.com/gopgas/gopgas/internal/team"
)

// Started calls run on one goroutine of the team. A goroutine that waits for a started call
// runs it, if the team's has not begun it: to wake another thread takes longer than a short
// call.
//
//	Start   the goroutine begins, at once or after startLater
//	Wait    runs the call, if it is its turn and has not begun; else the goroutine begins
//
// A rank with one core begins the goroutine later. At once, its thread would take the core
// from the program, and give it back, in each call. A started all-reduce of 64 KiB beside a
// computation of 7 us took 19 us that way, and takes 10 (beside_allreduce).

// startLater is how long the goroutine of a rank with one core lets the program compute first.
const startLater = 50 * time.Microsecond

// A started call waits in the queue of its team's stream. run makes the call, and done takes its result.
type started struct {
	ctx  context.Context
	call *team.Call
	key  team.Key
	run  func(ctx context.Context, key team.Key) error
	done func(error)
}

// Start implements team.Stream: it takes the next key and queues the call. An error says that no call
// began, and done does not run.
func (s *stream) Start(ctx context.Context, c *team.Call, run func(context.Context, team.Key) error, done func(error)) (team.Key, error) {
	t := s.team
	if err := t.err(); err != nil {
		return team.Key{}, t.failed(c.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serving {
		if !t.job.beginServing() {
			return team.Key{}, ErrClosed
		}
		s.serving = true
		s.begin()
	}
	key := s.next(c)
	s.queue = append(s.queue, started{ctx, c, key, run, done})
	return key, nil
}

// begin begins the goroutine, now or later. Precondition: the mutex is held.
func (s *stream) begin() {
	switch {
	case !s.team.job.oneCore:
		go s.serve()
	case s.later == nil:
		s.later = time.AfterFunc(startLater, s.serve)
	default:
		s.later.Reset(startLater)
	}
}

// pending reports whether the goroutine was to begin later, and now does not. Precondition: the
// mutex is held.
func (s *stream) pending() bool { return s.serving && s.later != nil && s.later.Stop() }

// Hurry implements team.Stream.
func (s *stream) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending() {
		go s.serve()
	}
}

// RunHere implements team.Stream. The call ends early where the job ends, as on the goroutine of
// the team. While it runs, helping says so to idle, and the job counts one goroutine more.
func (s *stream) RunHere(key team.Key) {
	s.mu.Lock()
	if len(s.queue) == 0 || s.queue[0].key != key || s.ended.Load() != key.Seq-1 || !s.team.job.beginServing() {
		s.mu.Unlock()
		s.Hurry()
		return
	}
	s.helping++
	next := s.take()
	if len(s.queue) == 0 && s.pending() { // the goroutine has nothing left to begin for
		s.serving = false
		s.team.job.serving.Done()
	}
	s.mu.Unlock()
	s.runStarted(&next)
	s.mu.Lock()
	s.helping--
	s.mu.Unlock()
	s.ring()
	s.team.job.serving.Done()
}

// take returns the first started call of the queue. Precondition: the mutex is held.
func (s *stream) take() started {
	next := s.queue[0]
	s.queue[0] = started{} // frees its references
	s.queue = s.queue[1:]
	return next
}

// serve is the team's goroutine. It runs started calls until there are none.
func (s *stream) serve() {
	defer s.team.job.serving.Done()
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.serving, s.queue = false, nil
			s.mu.Unlock()
			s.ring()
			return
		}
		next := s.take()
		s.mu.Unlock()
		s.runStarted(&next)
	}
}

// runStarted makes a call once all earlier calls have ended. done gets the result
// before a later call begins.
func (s *stream) runStarted(next *started) {
	t := s.team
	if err := s.awaitTurn(next.ctx, next.key.Seq); err != nil {
		next.done(t.failed(next.call.Name, err))
		return
	}
	err := t.err()
	if err == nil {
		err = next.run(next.ctx, next.key)
	}
	if err != nil {
		err = t.failed(next.call.Name, err)
	}
	next.done(err)
	s.end(next.key)
}
