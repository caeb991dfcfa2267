package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// A stream orders a team's collective calls at this rank. Each takes the next number,
// the same at every member, and runs when all earlier calls have ended:
//
//	Barrier  Start(AllReduce)  Start(Broadcast)  Barrier
//	   1             2                 3            4       number
//	 caller        goroutine of the team          caller    run by
//
// Blocking calls run on the caller's goroutine. Started calls run on one goroutine of the
// team, which exists while there are started calls. A goroutine that waits for a started
// call runs it, if the team's has not begun it: to wake another thread takes longer than a
// short call.
//
// A call takes the mutex once, to get its key. It ends by one store to ended.
type stream struct {
	team   *Team
	own    [team.Close + 1]team.Call // descriptions of runtime's own calls, by kind
	ended  atomic.Uint64             // all calls up to this number have ended
	behind atomic.Int64              // calls that wait for their turn

	mu       sync.Mutex
	last     team.Key // of the latest call
	past     [remembered]team.Call
	blocking uint64 // number of the latest blocking call; 0 if it never began
	queue    []started
	serving  bool // the goroutine runs
	helping  int  // goroutines in RunHere that run a call
	closing  bool // this rank closes the job
	inquiry  inquiry
}

// remembered is the number of calls that a rank remembers for inquiries.
const remembered = 64

// A started call waits in the queue.
type started struct {
	ctx  context.Context
	call *team.Call
	key  team.Key
	run  func(ctx context.Context, key team.Key) error
	done func(error)
}

func (s *stream) init(t *Team) {
	s.team = t
	for kind := range s.own {
		s.own[kind] = team.Collective(kind).Call()
	}
}

// next gives a call its key. Precondition: the mutex is held.
func (s *stream) next(c *team.Call) team.Key {
	s.last = s.last.Next(c)
	s.past[s.last.Seq%remembered] = *c
	if !s.inquiry.armed {
		s.team.attend()
	}
	return s.last
}

// remember returns the call of a number if it is among this rank's latest calls.
// Precondition: the mutex is held.
func (s *stream) remember(seq uint64) (team.Call, bool) {
	if seq == 0 || seq > s.last.Seq || s.last.Seq-seq >= remembered {
		return team.Call{}, false
	}
	return s.past[seq%remembered], true
}

// Begin begins a blocking collective call and returns its key once all earlier calls
// have ended. End ends the call. A rank that cannot take part tells the other members,
// which may not know the reason.
func (s *stream) Begin(ctx context.Context, c *team.Call) (team.Key, error) {
	t := s.team
	mutant.Hesitate()
	if err := t.err(); err != nil {
		return team.Key{}, t.failed(c.Name, err)
	}
	s.mu.Lock()
	if s.blocking > s.ended.Load() {
		s.mu.Unlock()
		return team.Key{}, fmt.Errorf("team %s: %w: %s began while another collective call of this rank was under way; "+
			"make them one at a time, or split a team for each goroutine", t.name, ErrMismatch, c.Name)
	}
	key := s.next(c)
	s.blocking = key.Seq
	s.mu.Unlock()
	if s.ended.Load() == key.Seq-1 {
		return key, nil
	}
	if err := s.awaitTurn(ctx, key.Seq); err != nil {
		s.mu.Lock()
		s.blocking = 0
		s.mu.Unlock()
		s.ring()
		return team.Key{}, t.failed(c.Name, err)
	}
	return key, nil
}

// awaitTurn waits until all calls before seq have ended. If it fails, the team breaks:
// no later call gets its turn.
func (s *stream) awaitTurn(ctx context.Context, seq uint64) error {
	s.behind.Add(1)
	defer s.behind.Add(-1)
	return s.team.inner.Await(ctx, func() bool { return s.ended.Load() == seq-1 })
}

// End ends a call that Begin began. With an error it breaks the team.
func (s *stream) End(key team.Key, c *team.Call, err error) error {
	if err != nil {
		err = s.team.failed(c.Name, err)
	}
	s.end(key)
	mutant.Hesitate()
	return err
}

// end gives the turn to the next call. The store pairs with the load in awaitTurn.
func (s *stream) end(key team.Key) {
	s.ended.Store(key.Seq)
	s.ring()
}

// ring wakes the goroutines that wait for calls to end.
func (s *stream) ring() {
	if s.behind.Load() > 0 {
		s.team.job.fabric.Bell().Ring()
	}
}

// awaitIdle waits until no call is under way, on a team that is broken.
func (s *stream) awaitIdle(ctx context.Context) error {
	s.behind.Add(1)
	defer s.behind.Add(-1)
	return s.team.job.fabric.Wait(ctx, s.idle)
}

// idle reports whether no call is under way. On a broken team no call begins any more.
func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.serving && s.helping == 0 && s.blocking <= s.ended.Load()
}

// Start begins a collective call that does not block.
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
		go s.serve()
	}
	key := s.next(c)
	s.queue = append(s.queue, started{ctx, c, key, run, done})
	return key, nil
}

// RunHere implements team.Stream. The call ends early where the job ends, as on the goroutine of
// the team.
func (s *stream) RunHere(key team.Key) {
	s.mu.Lock()
	if len(s.queue) == 0 || s.queue[0].key != key || s.ended.Load() != key.Seq-1 || !s.team.job.beginServing() {
		s.mu.Unlock()
		return
	}
	s.helping++
	next := s.take()
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

// serve runs started calls until there are none.
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
