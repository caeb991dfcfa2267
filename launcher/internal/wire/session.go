//go:build linux

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/silence"
)

// ErrSilent: the other end did not answer for the peer timeout.
var ErrSilent = errors.New("no answer")

// A Session divides one stream of bytes into many.
type Session struct {
	mux     *yamux.Session
	silence silence.Watch
	control *Stream
	writing sync.Mutex // of messages on the control stream
	cause   atomic.Pointer[error]
}

// NewSession begins a session over conn, at grun's end or at the agent's. Close closes
// conn, which ends a Read of conn.
func NewSession(conn io.ReadWriteCloser, grun bool) (*Session, error) {
	// A stop of grun may last for days, so silence is the only bound of a wait.
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false
	config.ConnectionWriteTimeout = math.MaxInt64
	config.StreamOpenTimeout = 0
	config.StreamCloseTimeout = math.MaxInt64
	config.LogOutput = io.Discard
	s := &Session{}
	through := heard{s.silence.Reader(conn), conn}
	var err error
	if grun {
		s.mux, err = yamux.Client(through, config)
	} else {
		s.mux, err = yamux.Server(through, config)
	}
	return s, err
}

// A Stream is one of the streams of a session.
type Stream struct{ *yamux.Stream }

// Close ends both directions: the other end reads end-of-file, and a Read at this end
// returns.
func (s *Stream) Close() error {
	s.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // never fails
	return s.Stream.Close()
}

// CloseWrite lets the other end read end-of-file.
func (s *Stream) CloseWrite() error { return s.Stream.Close() }

// Open opens a stream whose first message is m.
func (s *Session) Open(m Message) (*Stream, error) {
	inner, err := s.mux.OpenStream()
	if err != nil {
		return nil, s.explain(err)
	}
	stream := &Stream{inner}
	if err := Write(stream, m); err != nil {
		return nil, errors.Join(s.explain(err), stream.Close())
	}
	return stream, nil
}

// Accept returns the next stream that the other end opens.
func (s *Session) Accept() (*Stream, error) {
	inner, err := s.mux.AcceptStream()
	if err != nil {
		return nil, s.explain(err)
	}
	return &Stream{inner}, nil
}

// Control makes stream the one for messages. The caller then calls Listen.
func (s *Session) Control(stream *Stream) { s.control = stream }

// Send sends a message. It returns once the message has left this process.
func (s *Session) Send(m Message) error {
	mutant.Hesitate(mutant.Message)
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.explain(Write(s.control, m))
}

// Listen hands the messages of the control stream to handle until the session ends,
// and returns the reason.
func (s *Session) Listen(handle func(Message)) error {
	for {
		m, err := Read(s.control)
		mutant.Hesitate(mutant.Message)
		if err != nil {
			return s.explain(err)
		}
		switch m.Kind {
		case KindPing:
			if err := s.Send(Message{Kind: KindPong}); err != nil {
				return err
			}
		case KindPong:
		default:
			handle(m)
		}
	}
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.mux.CloseChan() }

// Close ends the session and all its streams.
func (s *Session) Close() { s.mux.Close() } //nolint:errcheck // never fails

// explain replaces the error of a session that has ended by the reason: that of this end, or
// bytes of the other end that are no frame.
func (s *Session) explain(err error) error {
	if cause := s.cause.Load(); err != nil && cause != nil {
		return *cause
	}
	if err != nil && s.mux.IsClosed() && errors.Is(s.end(), yamux.ErrInvalidVersion) {
		return ErrWire
	}
	return err
}

// end returns the error with which yamux ended the session. It takes the streams that wait
// to be accepted.
func (s *Session) end() error {
	for {
		if _, err := s.mux.AcceptStream(); err != nil {
			return err
		}
	}
}

// Pause lets the session begin or end to ignore silence: grun and the ranks are stopped.
func (s *Session) Pause(on bool) { s.silence.Pause(on) }

// Watch sends pings, and closes the session when the other end is silent for the bound.
// It returns when the session has ended.
func (s *Session) Watch(bound time.Duration) {
	s.silence.Start(bound, func() {
		go s.Send(Message{Kind: KindPing}) //nolint:errcheck // Listen sees the end of the session
	}, func(time.Duration) {
		cause := fmt.Errorf("%w for %v", ErrSilent, bound)
		s.cause.Store(&cause)
		s.Close()
	})
	defer s.silence.Stop()
	<-s.Done()
}

// heard is a connection whose reads silence knows.
type heard struct {
	io.Reader
	io.WriteCloser
}

// Listener returns the connections to the rendezvous that the agent opens, for bootstrap's
// Server. A goroutine calls other for each other stream, with its first message. To close the
// listener leaves the session open.
func (s *Session) Listener(other func(Message, *Stream)) net.Listener {
	ctx, cancel := context.WithCancel(context.Background())
	return &listener{session: s, other: other, ctx: ctx, cancel: cancel}
}

// A listener is the net.Listener of streams by which ranks reach the rendezvous. Other streams go
// to other.
type listener struct {
	session *Session
	other   func(Message, *Stream)
	ctx     context.Context
	cancel  context.CancelFunc
}

// Accept returns the next stream for the rendezvous. The first message of a stream says what it is
// for.
func (l *listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.session.mux.AcceptStreamWithContext(l.ctx)
		if err != nil {
			return nil, net.ErrClosed
		}
		stream := &Stream{inner}
		m, err := Read(stream) // the agent sends it as it opens the stream
		switch {
		case err != nil:
			stream.Close() //nolint:errcheck // nothing was sent
		case m.Kind == KindRendezvous:
			return stream, nil
		default:
			go l.other(m, stream)
		}
	}
}

func (l *listener) Close() error {
	l.cancel()
	return nil
}

func (l *listener) Addr() net.Addr { return l.session.mux.Addr() }
