//go:build linux

package agent

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/tunnel"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// files connects the standard files of a rank to its streams.
func (s *server) files(rank int) (f Files, err error) {
	for _, r := range s.plan.Ranks {
		if r.Rank == rank && r.Stdin {
			if f.Stdin, err = s.input(rank); err != nil {
				return f, err
			}
			f.Owned = append(f.Owned, f.Stdin)
		}
	}
	manager, err := f.Manage()
	if err != nil {
		return f, err
	}
	go s.relayManager(rank, manager)
	if s.plan.Stdout {
		if f.Stdout, err = s.outputOf(key{wire.KindStdout, rank}); err != nil {
			return f, err
		}
		f.Owned = append(f.Owned, f.Stdout)
	}
	if s.plan.Stderr {
		if f.Stderr, err = s.outputOf(key{wire.KindStderr, rank}); err != nil {
			return f, err
		}
		f.Owned = append(f.Owned, f.Stderr)
	}
	return f, nil
}

// stream waits for a stream of a rank.
func (s *server) stream(k key) (*wire.Stream, error) {
	select {
	case stream := <-s.slot(k):
		return stream, nil
	case <-s.session.Done():
		return nil, fmt.Errorf("stream of rank %d: the session has ended", k.rank)
	}
}

// input returns the file from which a rank reads its stream.
func (s *server) input(rank int) (*os.File, error) {
	stream, err := s.stream(key{wire.KindStdin, rank})
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		stream.Close() //nolint:errcheck // grun need not send to it
		return nil, fmt.Errorf("input of rank %d: %w", rank, err)
	}
	go func() {
		io.Copy(w, stream) //nolint:errcheck // a rank need not read its input
		w.Close()
		io.Copy(io.Discard, stream) //nolint:errcheck // grun must not wait for this rank
		stream.Close()              //nolint:errcheck // grun has ended it
	}()
	return r, nil
}

// outputOf returns the file to which a rank writes for its stream.
func (s *server) outputOf(k key) (*os.File, error) {
	stream, err := s.stream(k)
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		stream.Close() //nolint:errcheck // grun waits for its end
		return nil, fmt.Errorf("output of rank %d: %w", k.rank, err)
	}
	from := &reader{File: r}
	s.mu.Lock()
	s.readers = append(s.readers, from)
	s.mu.Unlock()
	s.pumps.Go(func() {
		io.Copy(onlyWriter{stream}, from) //nolint:errcheck // Listen sees the end of the session
		stream.CloseWrite()               //nolint:errcheck // as above
		io.Copy(io.Discard, from)         //nolint:errcheck // the rank must not wait for grun
		r.Close()
	})
	return w, nil
}

// onlyWriter hides other methods from io.Copy.
type onlyWriter struct{ io.Writer }

// A reader reads the output of a rank. Once it drains, it ends when no byte comes for
// drainWait: a process outside the job may hold the pipe.
type reader struct {
	*os.File
	draining atomic.Bool
}

// drain ends the reader soon: a process that outlives its rank may keep the pipe open.
func (r *reader) drain() {
	r.draining.Store(true)
	r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
}

// Read reads the pipe. The time that the writes of earlier bytes took does not count.
func (r *reader) Read(b []byte) (int, error) {
	if r.draining.Load() {
		r.SetReadDeadline(time.Now().Add(drainWait)) //nolint:errcheck // pipes have deadlines
	}
	return r.File.Read(b)
}

// WriteTo must not be the file's, which calls no Read.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// relayRanks passes the connections of ranks to the rendezvous on to grun.
func (s *server) relayRanks() {
	bootstrap.AcceptAll(s.listener, func(conn net.Conn) { go s.relayRank(conn) }, func(error) {})
}

// relayRank connects a rank of this host to the rendezvous, by a stream of the session. It returns
// when both directions have ended.
func (s *server) relayRank(conn net.Conn) {
	defer conn.Close()
	stream, err := s.session.Open(wire.Message{Kind: wire.KindRendezvous})
	if err != nil {
		return
	}
	defer stream.Close() //nolint:errcheck // both directions have ended
	passOn(conn, stream)
}

// relay runs a command that reaches another host, and passes its bytes on.
func (s *server) relay(m wire.Message, stream *wire.Stream) {
	defer stream.Close() //nolint:errcheck // both directions have ended
	if !s.begin(&s.relays, nil) {
		return
	}
	defer s.relays.Done()
	t, err := tunnel.Start(s.spawner, m.Command)
	if err != nil {
		s.post(wire.Message{Kind: wire.KindRelayEnded, ID: m.ID, Fault: faultOf(err)})
		return
	}
	go func() {
		io.Copy(t, stream) //nolint:errcheck // any end will do
		t.Close()          //nolint:errcheck // never fails
	}()
	io.Copy(onlyWriter{stream}, t) //nolint:errcheck // any end will do
	end := t.Wait()
	s.post(wire.Message{Kind: wire.KindRelayEnded, ID: m.ID, Status: uint32(end.Status), Text: end.Said})
}
