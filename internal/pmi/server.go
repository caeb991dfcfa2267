package pmi

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// maxStored bounds the bytes of a key-value space.
const maxStored = 256 << 20

// Hooks report the ranks' actions. Any of them may be nil. The goroutine that serves the
// rank calls them, before the rank gets its response.
type Hooks struct {
	Started   func(rank int)
	Finalized func(rank int)
	Aborted   func(rank, code int, message string)
}

// A Server is the process manager of one job for its ranks: it has their key-value space,
// and counts them at fences. Its methods may be called from any goroutine.
type Server struct {
	size    int
	mapping string
	ended   []chan struct{} // of each rank, closed by RankEnded
	apps    func(rank int) int
	hooks   Hooks

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	values map[string]string
	stored int
	fence  *fence
	dead   error // a rank died, or Close was called: no fence ends well
}

// A fence is one collective call of all ranks.
type fence struct {
	in   map[int]bool
	done chan struct{} // closed when all ranks are in, or one is dead
	err  error
}

// NewServer returns the process manager of a job. nodes has the node of each rank, and apps
// returns the number of a rank's program.
func NewServer(nodes []int, apps func(rank int) int, hooks Hooks) *Server {
	s := &Server{size: len(nodes), mapping: Mapping(nodes), apps: apps, hooks: hooks,
		conns: make(map[net.Conn]struct{}), values: make(map[string]string), fence: newFence()}
	for range nodes {
		s.ended = append(s.ended, make(chan struct{}))
	}
	return s
}

func newFence() *fence { return &fence{in: make(map[int]bool), done: make(chan struct{})} }

// RankEnded ends the fence of a rank whose process has ended, and no other rank's. The
// caller calls it once for each rank. Serve then reads the rest of the connection.
func (s *Server) RankEnded(rank int) { close(s.ended[rank]) }

// errEnded: the process of the rank has ended.
var errEnded = errors.New("rank_has_ended")

// RankDied ends the fences of all ranks with an error, now and later.
func (s *Server) RankDied(rank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(fmt.Errorf("rank_%d_died", rank)) // without blanks: it travels
}

// fail ends all fences. The caller holds mu.
func (s *Server) fail(err error) {
	if s.dead == nil {
		s.dead, s.fence.err = err, err
		close(s.fence.done)
		s.fence = newFence()
	}
}

// Close ends all fences and connections.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.fail(errors.New("job_is_over"))
	for c := range s.conns {
		c.Close()
	}
}

// own takes or gives back a connection, which Close ends. It reports whether the server still
// takes one.
func (s *Server) own(c net.Conn, take bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !take {
		delete(s.conns, c)
	} else if !s.closed {
		s.conns[c] = struct{}{}
	}
	return !s.closed
}

// Serve serves the connection of a rank, which it owns, until the connection ends or Close is
// called. A rank that dies in a fence stays there until RankEnded or RankDied. The error is that of a rank
// that breaks the protocol.
func (s *Server) Serve(rank int, c net.Conn) error {
	defer c.Close()
	if !s.own(c, true) {
		return nil
	}
	defer s.own(c, false)
	session := &session{Server: s, conn: newConn(c), rank: rank}
	for !session.over {
		if err := session.step(); errors.Is(err, ErrWire) {
			return fmt.Errorf("rank %d: %w", rank, err)
		} else if err != nil {
			return nil // the rank has ended, which its launcher sees
		}
	}
	if _, err := session.conn.r.ReadByte(); err == nil {
		return fmt.Errorf("rank %d: %w", rank, wrong("a message behind the last one: a rank runs one program of MPI"))
	}
	return nil // the rank keeps its end until it ends
}

// put stores a value. A session calls it for a rank, as it does get and await.
func (s *Server) put(key, value string) error {
	if err := checkPair(key, ""); err != nil || len(value) > MaxValue {
		return errors.New("key_or_value_too_long")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, has := s.values[key]
	grown := len(value) - len(old)
	if !has {
		grown += len(key)
	}
	if s.stored+grown > maxStored {
		return errors.New("key-value_space_is_full")
	}
	s.stored += grown
	s.values[key] = value
	return nil
}

// get returns a value, or an attribute of the job.
func (s *Server) get(key string) (string, bool) {
	if key == mappingKey {
		return s.mapping, s.mapping != ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[key]
	return value, ok
}

// await enters the rank into the fence, and returns once all ranks have come or one of them cannot.
func (s *Server) await(rank int) error {
	s.mu.Lock()
	f := s.fence
	if f.in[rank] || s.dead != nil {
		defer s.mu.Unlock()
		if s.dead != nil {
			return s.dead
		}
		return errors.New("rank_is_in_the_fence")
	}
	f.in[rank] = true
	if len(f.in) == s.size {
		close(f.done)
		s.fence = newFence()
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-s.ended[rank]:
		return errEnded
	}
}
