package runtime

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/team"
)

// A stream is the order of a team's collective calls, as this rank makes them.
// Each takes the next number, the same at every member, and runs when all before
// it have ended:
//
//	Barrier  Start(AllReduce)  Start(Broadcast)  Barrier
//	   1             2                 3            4       number
//	 caller        goroutine of the team          caller    who runs it
//
// Blocking calls run where they are made. Those that were started run on one
// goroutine, which is there while there are any.
type stream struct {
	team  *Team
	plain [team.Close + 1]team.Call // what describes runtime's own calls, by kind
	quick quick
	met   uint64 // a hash of all calls up to the latest that blocks, for that one

	// While calls are quick, these are not up to date: hold sees to that.
	mu       sync.Mutex
	last     uint64 // number of the latest call
	blocking uint64 // of the latest that blocks; 0 when it never began
	queue    []started
	serving  bool // the goroutine is there
	closing  bool // this rank closes the job
	past     [remembered]record
	chain    uint64 // a hash of all calls so far
	inquiry  inquiry

	ended  atomic.Uint64 // all calls up to this number have ended
	behind atomic.Int64  // calls that wait for their turn
}

// A record is what is remembered of a call.
type record struct {
	seq   uint64
	chain uint64 // a hash of all calls up to this one
	call  team.Call
}

// remembered is how many calls a rank can still be asked about.
const remembered = 64

// A started call waits in the queue.
type started struct {
	ctx  context.Context
	call *team.Call
	seq  uint64
	run  func(ctx context.Context, seq uint64) error
	done func(error)
}

// fnvPrime mixes calls, as the hash of Fowler, Noll and Vo does.
const fnvPrime = 1099511628211

func (s *stream) init(t *Team) {
	s.team = t
	for kind := range s.plain {
		s.plain[kind].Kind = team.Collective(kind)
	}
}

// number gives a call its place. Called with the mutex held.
func (s *stream) number(c *team.Call) uint64 {
	s.last++
	s.chain = chained(s.chain, c)
	s.past[s.last%remembered] = record{s.last, s.chain, *c}
	return s.last
}

func chained(before uint64, c *team.Call) uint64 {
	return (before ^ c.Mark ^ uint64(c.Kind)) * fnvPrime
}

// remember returns the call of a number if this rank has made it, and not too
// long ago. Called with the mutex held.
func (s *stream) remember(seq uint64) (team.Call, bool) {
	if seq == 0 || seq > s.last || s.last-seq >= remembered {
		return team.Call{}, false
	}
	if r := &s.past[seq%remembered]; r.seq == seq {
		return r.call, true
	}
	return s.quick.past[seq%remembered].call, true
}

// Begin begins a blocking collective call and returns its number, when it is its
// turn. End ends it. A rank that cannot take part says so to the others, who
// may not know why.
func (s *stream) Begin(ctx context.Context, c *team.Call, lasts bool) (uint64, error) {
	if err := s.team.err(); err != nil {
		return 0, s.team.failed(c.Kind, err)
	}
	if seq, ok := s.beginQuick(c); ok {
		return seq, nil
	}
	return s.begin(ctx, c, lasts)
}

// begin is Begin of a call that is not quick.
func (s *stream) begin(ctx context.Context, c *team.Call, lasts bool) (uint64, error) {
	t := s.team
	s.mu.Lock()
	s.hold()
	if s.blocking > s.ended.Load() {
		s.mu.Unlock()
		return 0, fmt.Errorf("team %s: %w: %s began while another collective call of this rank was under way; "+
			"make them one at a time, or split a team for each goroutine", t.name, ErrMismatch, c.Kind)
	}
	seq := s.number(c)
	s.blocking, s.met = seq, s.chain
	if lasts {
		s.quick.learn(c)
	}
	t.attend()
	s.mu.Unlock()
	if s.ended.Load() == seq-1 {
		return seq, nil
	}
	if err := s.awaitTurn(ctx, seq); err != nil {
		s.mu.Lock()
		s.blocking = 0
		s.mu.Unlock()
		s.ring()
		return 0, t.failed(c.Kind, err)
	}
	return seq, nil
}

// awaitTurn waits until all calls before seq have ended. When it fails, so does
// the team: nobody's turn comes any more.
func (s *stream) awaitTurn(ctx context.Context, seq uint64) error {
	s.behind.Add(1)
	defer s.behind.Add(-1)
	return s.team.inner.Await(ctx, func() bool { return s.ended.Load() == seq-1 })
}

// End ends a call that began, and takes the consequences of err.
func (s *stream) End(seq uint64, c *team.Call, err error) error {
	if err != nil {
		err = s.team.failed(c.Kind, err)
	}
	if !s.quick.end() {
		s.end(seq)
	}
	return err
}

// end is End of a call that is not quick. The store pairs with the load in awaitTurn.
func (s *stream) end(seq uint64) {
	s.mu.Lock()
	s.ended.Store(seq)
	s.release()
	s.mu.Unlock()
	s.ring()
}

// ring wakes those that wait for calls to end.
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

// idle tells whether no call is under way. On a team that is broken none begins any more.
func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	defer s.release()
	return !s.serving && s.blocking <= s.ended.Load()
}

// Start begins a collective call that does not block.
func (s *stream) Start(ctx context.Context, c *team.Call, run func(context.Context, uint64) error, done func(error)) error {
	t := s.team
	if err := t.err(); err != nil {
		return t.failed(c.Kind, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold()
	if !s.serving {
		if !t.job.beginServing() {
			s.release()
			return ErrClosed
		}
		s.serving = true
		go s.serve()
	}
	s.queue = append(s.queue, started{ctx, c, s.number(c), run, done})
	t.attend()
	return nil
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
		next := s.queue[0]
		s.queue[0] = started{} // what it holds can go
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.runStarted(&next)
	}
}

// runStarted makes a call when it is its turn. done hears of its end before those
// behind it begin.
func (s *stream) runStarted(next *started) {
	t := s.team
	if err := s.awaitTurn(next.ctx, next.seq); err != nil {
		next.done(t.failed(next.call.Kind, err))
		return
	}
	err := t.err()
	if err == nil {
		err = next.run(next.ctx, next.seq)
	}
	if err != nil {
		err = t.failed(next.call.Kind, err)
	}
	next.done(err)
	s.end(next.seq)
}
