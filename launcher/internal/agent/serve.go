//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/launcher/internal/spawn"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// helloWait bounds the time from the start of an agent to grun's first message.
const helloWait = 30 * time.Second

// A server is an agent whose grun is on another host.
type server struct {
	session *wire.Session
	spawner *spawn.Spawner // of relayed commands

	planned  chan struct{} // closed once programs may come
	plan     wire.Plan
	hold     hold           // of the directory for programs
	listener net.Listener   // to which ranks connect as to the rendezvous
	staging  sync.WaitGroup // programs that are to come
	ending   chan struct{}  // closed once no more programs count

	preparing sync.WaitGroup
	receiving sync.WaitGroup
	relays    sync.WaitGroup
	cleaning  sync.Once

	mu      sync.Mutex
	agent   *Agent                    // nil: there is no plan yet, or the agent refused it
	streams map[key]chan *wire.Stream // of ranks
	fault   error                     // of staging
	coming  []*wire.Stream            // of programs
	readers []*reader                 // of the output of ranks
	pumps   sync.WaitGroup            // goroutines of readers
	gone    bool                      // the host is clean, or will be soon
	unused  bool                      // no rank takes a stream any more
}

// A key names a stream of a rank.
type key struct {
	kind wire.Kind
	rank int
}

// Serve runs the agent of this host for the grun at the other end of conn. It returns when
// the stream of bytes has ended and no process of the job is left on this host.
func Serve(conn io.ReadWriteCloser) error {
	session, err := wire.NewSession(conn, false)
	if err != nil {
		return err
	}
	defer session.Close()
	s := &server{session: session, spawner: spawn.New(), planned: make(chan struct{}), ending: make(chan struct{}), streams: make(map[key]chan *wire.Stream)}
	defer s.spawner.Stop()
	bound, err := s.greet()
	if err != nil {
		return err
	}
	go session.Watch(bound)
	go s.accept()
	defer s.heed()()
	err = session.Listen(s.handle)
	s.clean()
	s.relays.Wait()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// greet takes the control stream, and returns the bound of grun's silence.
func (s *server) greet() (time.Duration, error) {
	late := time.AfterFunc(helloWait, s.session.Close)
	defer late.Stop()
	control, err := s.session.Accept()
	if err != nil {
		return 0, fmt.Errorf("grun does not begin: %w", err)
	}
	m, err := wire.Read(control)
	if err == nil && m.Kind != wire.KindControl {
		err = fmt.Errorf("%w: kind %d in place of the first", wire.ErrWire, m.Kind)
	}
	s.session.Control(control)
	return m.Bound, err
}

// accept takes the other streams of grun.
func (s *server) accept() {
	for {
		stream, err := s.session.Accept()
		if err != nil {
			return
		}
		go s.open(stream)
	}
}

// open reads the first message of a stream, and gives the stream its work.
func (s *server) open(stream *wire.Stream) {
	m, err := wire.Read(stream)
	if err != nil {
		stream.Close() //nolint:errcheck // nothing was sent
		return
	}
	switch m.Kind {
	case wire.KindStdin, wire.KindStdout, wire.KindStderr:
		select {
		case s.slot(key{m.Kind, m.Rank}) <- stream:
		default:
			stream.Close() //nolint:errcheck // a second stream of one name
		}
		s.closeUnused(false)
	case wire.KindRelay:
		s.relay(m, stream)
	case wire.KindProgram:
		select {
		case <-s.planned:
			s.receive(m, stream)
		case <-s.session.Done():
		}
	default:
		stream.Close() //nolint:errcheck // nothing was sent
	}
}

// slot returns the channel that passes a stream on.
func (s *server) slot(k key) chan *wire.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[k] == nil {
		s.streams[k] = make(chan *wire.Stream, 1)
	}
	return s.streams[k]
}

// begin adds work that clean waits for, unless clean has begun. Clean closes the stream
// of a program.
func (s *server) begin(work *sync.WaitGroup, program *wire.Stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	work.Add(1)
	if program != nil {
		s.coming = append(s.coming, program)
	}
	return true
}

// handle handles one message of grun.
func (s *server) handle(m wire.Message) {
	switch m.Kind {
	case wire.KindPlan:
		s.accepted(m.Plan)
	case wire.KindGo:
		if a := s.current(); a != nil {
			go a.Start()
		}
	case wire.KindSignal:
		s.signal(syscall.Signal(m.Signal))
	case wire.KindEnd:
		go s.end()
	}
}

func (s *server) post(m wire.Message) {
	s.session.Send(m) //nolint:errcheck // Listen sees the end of the session
}

// current returns the agent, nil before the plan has come.
func (s *server) current() *Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agent
}

// signal passes a signal on. While the user stops the job, grun is stopped too, and
// does not answer.
func (s *server) signal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGTSTP:
		s.session.Pause(true)
	case syscall.SIGCONT:
		s.session.Pause(false)
	}
	if a := s.current(); a != nil {
		a.Signal(sig)
	}
}

// heed has the ranks get the signals that reach the agent. A resource manager signals the
// ranks itself. The agent outlives the signals, to report how the ranks end. Before ranks
// start, SIGTERM and SIGINT end it. The caller calls stop.
func (s *server) heed() (stop func()) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	over := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-signals:
				a := s.current()
				if (a == nil || !a.heed(sig.(syscall.Signal))) && ends(sig) {
					s.session.Close()
				}
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(over)
	}
}

// ends reports whether a signal tells a process to end.
func ends(sig os.Signal) bool { return sig == syscall.SIGTERM || sig == syscall.SIGINT }

// end ends the agent at grun's request.
func (s *server) end() {
	s.clean()
	s.post(wire.Message{Kind: wire.KindGone})
}

// clean ends all that is left on this host. It returns when the output of the ranks is on
// its way, or cannot be.
func (s *server) clean() {
	s.cleaning.Do(func() {
		s.mu.Lock()
		s.gone = true
		for _, stream := range s.coming {
			stream.Close() //nolint:errcheck // its reader returns
		}
		s.mu.Unlock()
		close(s.ending)
		s.receiving.Wait()
		s.preparing.Wait()
		if s.listener != nil {
			s.listener.Close()
		}
		if s.agent == nil {
			return
		}
		s.agent.Sweep()
		s.hold.release()
		s.mu.Lock()
		for _, r := range s.readers {
			r.drain()
		}
		s.mu.Unlock()
		s.pumps.Wait()
		s.closeUnused(true)
		s.agent.Close()
	})
}

// closeUnused closes the streams that no rank has taken, since grun waits for their ends:
// ranks that did not start have some. It does so once swept was true, for later streams too.
func (s *server) closeUnused(swept bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unused = s.unused || swept
	if !s.unused {
		return
	}
	for _, slot := range s.streams {
		select {
		case stream := <-slot:
			stream.Close() //nolint:errcheck // no rank wrote to it
		default:
		}
	}
}
