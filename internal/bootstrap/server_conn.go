package bootstrap

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// goodbyeTimeout bounds how long a rank may take, before its goodbye, to read the
// messages queued for it.
const goodbyeTimeout = 5 * time.Second

// serve handles one connection from its handshake to its end.
func (s *Server) serve(socket net.Conn) {
	defer s.drop(socket)
	rank, conn, err := s.admit(socket)
	if err != nil {
		return
	}
	if s.hooks.Joined != nil {
		s.hooks.Joined(rank)
	}
	s.wg.Go(func() { s.write(rank, conn) })
	err = s.read(rank, conn)
	if err == nil {
		conn.SetDeadline(time.Now().Add(goodbyeTimeout)) //nolint:errcheck // closed is fine
		conn.Read(make([]byte, 1))                       //nolint:errcheck // any end will do: the client closes first
		return
	}
	s.lost(rank, err)
}

// drop forgets a connection.
func (s *Server) drop(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known(conn)
	delete(s.conns, conn)
	if s.dropped != nil {
		close(s.dropped)
		s.dropped = nil
	}
}

// known takes conn off the unproven connections. It returns false for a connection that
// was cut to make room for another. The caller holds mu.
func (s *Server) known(conn net.Conn) bool {
	i := slices.IndexFunc(s.unproven, func(u stranger) bool { return u.conn == conn })
	if i >= 0 {
		s.unproven = slices.Delete(s.unproven, i, i+1)
	}
	return i >= 0 || !s.conns[conn]
}

// admit runs the handshake, behind that of TLS if there is one. It admits a rank that
// proves the secret, and returns the connection for its messages.
func (s *Server) admit(socket net.Conn) (rank int, conn net.Conn, err error) {
	socket.SetDeadline(time.Now().Add(handshakeTimeout)) //nolint:errcheck // closed shows below
	if conn, err = s.decrypt(socket); err != nil {
		return 0, nil, err
	}
	session, err := greet(conn, s.secret)
	if err != nil {
		return 0, nil, err
	}
	w := s.enter(socket, session.joining())
	err = session.welcome(conn, w)
	switch {
	case w.refusal != nil:
		return 0, nil, w.refusal
	case err != nil:
		s.lost(w.rank, err)
		return 0, nil, err
	}
	socket.SetDeadline(time.Time{}) //nolint:errcheck // as above
	return w.rank, ready(conn), nil
}

// enter marks a rank as joined, or returns the reason of the refusal.
func (s *Server) enter(conn net.Conn, j Joining) welcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	whole := s.known(conn)
	if j.Rank == AnyRank {
		j.Rank = slices.IndexFunc(s.members, func(m member) bool { return m.state == absent })
	}
	w := welcome{rank: j.Rank, size: s.size, hosted: s.hosted}
	if !whole {
		w.refusal = &RefusedError{Rank: j.Rank, Reason: "its connection was cut"} // which it cannot read
		return w
	}
	if reason, before := s.refuses(j); reason != "" {
		w.refusal = &RefusedError{Rank: j.Rank, Reason: reason, Joined: before}
		return w
	}
	s.members[j.Rank].state = joined
	if s.first == nil {
		s.first = &j
	}
	s.bound(j.Wait)
	return w
}

// refuses returns why a rank may not join, "" if it may. before reports that the rank
// has joined before. The caller holds mu.
func (s *Server) refuses(j Joining) (reason string, before bool) {
	switch {
	case s.closed:
		return "the job is over", false
	case j.Size != 0 && j.Size != s.size:
		return fmt.Sprintf("it expects a job of %d ranks, and the job has %d: give all ranks one %s", j.Size, s.size, EnvSize), false
	case s.start.expired:
		return fmt.Sprintf("it comes too late: the start of the job ended after %v", s.start.wait), false
	case j.Rank == AnyRank:
		return fmt.Sprintf("all %d ranks have joined", s.size), false
	case j.Rank >= s.size:
		return fmt.Sprintf("the job has %d ranks", s.size), false
	}
	switch m := &s.members[j.Rank]; m.state {
	case absent:
		return s.differs(j), false
	case dead:
		return "it was declared dead (" + m.cause + "), and a process that is started again cannot replace it: start the whole job again", true
	}
	return "this rank has joined before: if its process was started again, start the whole job again; else give each process a " + EnvRank + " of its own, or " + anyWord + " to all of them", true
}

// lost reports a connection that ended without goodbye.
func (s *Server) lost(rank int, err error) {
	s.mu.Lock()
	over := s.closed
	s.mu.Unlock()
	switch {
	case over:
	case s.hooks.Lost != nil:
		s.hooks.Lost(rank, err)
	default:
		s.RankDied(rank, fmt.Sprintf("its process ended, or its connection broke: %v", err))
	}
}

// write sends a rank's queued frames until the queue is closed or the connection fails. serve then
// meets the failure.
func (s *Server) write(rank int, conn net.Conn) {
	out := s.members[rank].out
	for frames := out.take(); frames != nil; frames = out.take() {
		buffers := net.Buffers(frames)
		if _, err := buffers.WriteTo(conn); err != nil {
			conn.Close()
			return
		}
	}
}

// read handles a rank's messages until its goodbye (nil) or the end of the
// connection.
func (s *Server) read(rank int, conn net.Conn) error {
	r := bufio.NewReader(conn)
	for {
		m, err := readMessage(r)
		if err != nil {
			return err
		}
		switch m.kind {
		case kindGoodbye:
			return s.goodbye(rank, m)
		case kindExchange:
			err = s.contribute(rank, m)
		case kindCall, kindTell, kindReply:
			err = s.route(rank, m)
		case kindPing:
			err = s.respond(rank)
		case kindAbort:
			s.abort(rank, m.name)
		case kindReport:
			if s.hooks.Reported != nil {
				s.hooks.Reported(rank, m.name, m.part())
			}
		default:
			err = fmt.Errorf("%w: kind %d from a client", ErrWire, m.kind)
		}
		if err != nil {
			return err
		}
	}
}

// goodbye records that a rank has left, or has aborted the job. The acknowledgment is the last
// frame to the rank.
func (s *Server) goodbye(rank int, m message) error {
	to := left
	if m.code == codeDead {
		to = dead
		if s.hooks.Aborted != nil { // before other ranks act on the death
			s.hooks.Aborted(rank, m.name)
		}
	}
	if !s.depart(rank, to, m.name) {
		return errors.New("goodbye of a rank that was declared dead")
	}
	if to == left && s.hooks.Left != nil {
		s.hooks.Left(rank)
	}
	frame, err := (&message{kind: kindGoodbyeAck}).frame()
	out := s.members[rank].out
	out.put(frame, len(frame))
	out.close()
	return err
}

// respond responds to a rank's ping.
func (s *Server) respond(rank int) error {
	frame, err := (&message{kind: kindPong}).frame()
	s.members[rank].out.put(frame, len(frame))
	return err
}

// abort tells all ranks, and the launcher, that a rank has aborted the job.
func (s *Server) abort(rank int, cause string) {
	s.mu.Lock()
	s.broadcast(message{kind: kindAbort, rank: rank, name: cause})
	s.mu.Unlock()
	if s.hooks.Aborted != nil {
		s.hooks.Aborted(rank, cause)
	}
}

// route passes a message from one rank on to another. The server drops messages
// to a dead rank: their callers get the news of its death. A rank gets at most as
// many replies as it has made requests, and they always find room.
func (s *Server) route(from int, m message) error {
	to := m.rank
	if to < 0 || to >= s.size {
		return fmt.Errorf("%w: addressee %d of %d ranks", ErrWire, to, s.size)
	}
	m.rank = from
	frame, err := m.frame()
	if err != nil {
		return err
	}
	out := s.members[to].out
	if m.kind == kindReply {
		out.put(frame, len(frame))
		return nil
	}
	if errors.Is(out.tryPut(frame, len(frame)), ErrOverflow) {
		return s.refuse(from, to, m.id)
	}
	return nil
}

// refuse tells a rank that its message found no room.
func (s *Server) refuse(from, to int, id uint64) error {
	frame, err := (&message{kind: kindOverflow, rank: to, id: id}).frame()
	s.members[from].out.put(frame, len(frame))
	return err
}
