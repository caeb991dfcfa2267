package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gopgas/gopgas/internal/identity"
)

// Hooks report the ranks' actions to the launcher. Any of them may be nil. They
// are called without locks held, from the goroutine that reads the rank's
// connection, and must not call [Server.Close].
type Hooks struct {
	Joined   func(rank int)
	Left     func(rank int)               // said goodbye
	Aborted  func(rank int, cause string) // by Client.Abort or Client.Die
	Reported func(rank int, name string, payload []byte)
	// Lost: the connection ended without goodbye. With a launcher the end of the
	// process decides: the launcher then calls [Server.RankDied]. If Lost is nil,
	// the loss counts as the death.
	Lost func(rank int, err error)
	// Crowded: this process cannot take a connection, most likely for want of descriptors. The
	// rank waits, and Serve tries again. Serve calls it once.
	Crowded func(err error)
}

// A Server is the rendezvous of one job.
type Server struct {
	size   int
	secret []byte
	hooks  Hooks
	hosted bool // in the process of rank 0; else in a launcher's, or in that of all ranks

	identity func() (*tls.Config, error) // made at the first use

	mu         sync.Mutex
	closed     bool
	start      start
	dropped    chan struct{} // closed at the end of a connection; nil without a waiter
	members    []member
	first      *Joining    // of the rank that joined first; nil before
	leavers    []int       // ranks that have left, of which the other ranks do not know yet
	leaveTimer *time.Timer // announces them
	exchanges  map[string][]*exchange
	listeners  map[net.Listener]struct{}
	conns      map[net.Conn]bool // every open connection; true: it came through a listener
	unproven   []stranger        // those of Serve that have not proved the secret, oldest first

	wg sync.WaitGroup
}

// member holds the server's knowledge of one rank.
type member struct {
	state state
	cause string         // of death
	out   *queue[[]byte] // exists from the start, so that messages can wait for the rank
}

// A state says how far a rank has come in the job.
type state uint8

const (
	absent  state = iota
	missing       // absent at the end of the start's bound
	joined
	left
	dead
)

// maxUnproven bounds the connections that have not proved the secret, in
// addition to the size of the job. One more cuts the oldest.
const maxUnproven = 256

// enoughToProve is a time in which a rank proves the secret even on a busy machine. A process
// that is out of descriptors grants no more.
const enoughToProve = time.Second

// A stranger is a connection that has not proved the secret.
type stranger struct {
	conn  net.Conn
	since time.Time
}

// NewServer returns the rendezvous of a job with size ranks.
func NewServer(size int, secret []byte, hooks Hooks) *Server {
	s := &Server{
		size: size, secret: slices.Clone(secret), hooks: hooks,
		identity:  sync.OnceValues(func() (*tls.Config, error) { return identity.Config(secret, identity.Rendezvous) }),
		members:   make([]member, size),
		exchanges: make(map[string][]*exchange),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[net.Conn]bool),
	}
	for r := range s.members {
		s.members[r].out = newQueue[[]byte]()
	}
	return s
}

// Serve takes connections from l until ctx ends or Close is called; neither is an
// error. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.Join(ErrClosed, l.Close())
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer s.stopped(l)
	crowded := false
	AcceptAll(l, func(conn net.Conn) { s.attach(conn, true) }, func(err error) {
		s.makeRoom()
		if !crowded && s.hooks.Crowded != nil {
			s.hooks.Crowded(err)
		}
		crowded = true
	})
	return nil
}

// stopped forgets a listener that has ended.
func (s *Server) stopped(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// Attach serves one connection that did not come through a listener, such as
// one end of net.Pipe. It returns at once.
func (s *Server) Attach(conn net.Conn) { s.attach(conn, false) }

// attach serves a connection. If too many have not proved the secret, it cuts the oldest of these.
func (s *Server) attach(conn net.Conn, unproven bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	s.conns[conn] = unproven
	if unproven {
		if len(s.unproven) >= maxUnproven+s.size {
			s.cutOldest()
		}
		s.unproven = append(s.unproven, stranger{conn, time.Now()})
	}
	s.wg.Go(func() { s.serve(conn) })
}

// cutOldest closes the oldest connection that has not proved the secret. The caller holds mu.
func (s *Server) cutOldest() {
	s.unproven[0].conn.Close()
	s.unproven = s.unproven[1:]
}

// makeRoom closes connections that have not proved the secret within enoughToProve: they take
// descriptors that ranks need.
func (s *Server) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.unproven) > 0 && time.Since(s.unproven[0].since) >= enoughToProve {
		s.cutOldest()
	}
}

// RankDied announces a rank's death to all ranks: exchanges with it fail, now and
// later, and so do calls to it. For a rank that has left it does nothing.
func (s *Server) RankDied(rank int, cause string) {
	if s.depart(rank, dead, cut(cause)) {
		s.members[rank].out.discard() // its process takes no more messages
	}
}

// depart moves a rank to left or dead and tells the other ranks.
func (s *Server) depart(rank int, to state, cause string) bool {
	if rank < 0 || rank >= s.size {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.members[rank]
	if m.state == left || m.state == dead {
		return false
	}
	m.state, m.cause = to, cause
	s.failExchanges(rank)
	if to == dead {
		s.broadcast(message{kind: kindDead, rank: rank, name: cause})
	} else if s.leavers = append(s.leavers, rank); len(s.leavers) == 1 && !s.closed {
		s.leaveTimer = time.AfterFunc(leaveDelay*time.Duration(s.size), s.announceLeavers)
	}
	return true
}

// leaveDelay, for each rank of the job, gathers ranks that leave. The ranks leave together
// at the end of a job, and ranks that have left get no news. So few messages go out, not
// one for each pair of ranks.
const leaveDelay = 100 * time.Microsecond

// announceLeavers tells the ranks that are there, or may still come, which have left.
func (s *Server) announceLeavers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broadcast(message{kind: kindLeft, rank: AnyRank, members: s.leavers})
	s.leavers = nil
}

// broadcast queues m for all ranks but its subject and those that are gone. The caller
// holds mu.
func (s *Server) broadcast(m message) {
	frame, err := m.frame()
	if err != nil {
		return // names are cut to fit: unreachable
	}
	for r := range s.members {
		if state := s.members[r].state; r != m.rank && state != left && state != dead {
			s.members[r].out.put(frame, len(frame))
		}
	}
}

// Close ends the service: it cuts all connections, closes listeners, and returns
// when its goroutines have ended. Clients see [Events].Lost.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.start.stop()
	if s.leaveTimer != nil {
		s.leaveTimer.Stop()
	}
	for l := range s.listeners {
		l.Close()
	}
	for conn := range s.conns {
		conn.Close()
	}
	for r := range s.members {
		s.members[r].out.discard()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}
