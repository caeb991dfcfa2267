//go:build linux

package launcher

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// stopWait bounds the wait for the message that stops the ranks of a host.
const stopWait = time.Second

// A remoteAgent is grun's end of the agent of another host.
type remoteAgent struct {
	job  *job
	host *host

	parent   *remoteAgent   // this process reaches the host through its agent; nil: directly
	children []*remoteAgent // agents that are reached through this one

	reached chan struct{} // closed when session stands, or never will
	link    link
	session *wire.Session // nil: the host was not reached
	said    string        // the end of the link's standard error; set before closed is closed

	refusal chan error    // of the plan, or nil
	gone    chan struct{} // closed when no process of the job is left on the host, or the host is lost
	once    sync.Once     // closes gone
	loss    error         // of the host; set before gone is closed
	closed  chan struct{} // by close

	listens atomic.Bool         // the agent takes messages
	signals chan syscall.Signal // that are still to be sent
	stopped chan struct{}       // SIGTSTP was sent

	mu     sync.Mutex
	relays []*relay // commands that the agent runs to reach other hosts
}

// newRemoteAgent returns the agent of another host. It connects later.
func newRemoteAgent(j *job, h *host) *remoteAgent {
	return &remoteAgent{job: j, host: h, reached: make(chan struct{}), refusal: make(chan error, 1),
		gone: make(chan struct{}), closed: make(chan struct{}), signals: make(chan syscall.Signal, 16), stopped: make(chan struct{}, 1)}
}

// listen handles the agent's messages until the session ends.
func (r *remoteAgent) listen() {
	err := r.session.Listen(r.handle)
	r.session.Close()
	r.once.Do(func() {
		r.loss = r.lossOf(err)
		r.job.post(event{kind: hostLost, host: r.host, err: r.loss})
		close(r.gone)
	})
}

// lossOf says why the session ended.
func (r *remoteAgent) lossOf(err error) error {
	if errors.Is(err, wire.ErrSilent) {
		return err
	}
	if errors.Is(err, wire.ErrWire) {
		return fmt.Errorf("%w came from it: a startup file of its shell, such as .bashrc, may leave a process behind that writes to standard output; "+
			"have it write to a file", err)
	}
	end := r.link.Wait()
	if why := r.job.managerSays(end.Said); why != "" {
		return &managerError{why}
	}
	name := r.job.spec.Backend.Name()
	switch {
	case end.Status.Signaled():
		return fmt.Errorf("%s died of %s", name, unix.SignalName(end.Status.Signal()))
	case end.Status.Exited() && end.Status.ExitStatus() != 0:
		return fmt.Errorf("%s exited with code %d%s", name, end.Status.ExitStatus(), quoted(end.Said))
	case end.Said != "":
		return errors.New(strings.TrimSpace(end.Said))
	}
	return errors.New("its agent ended")
}

// handle takes a message of the agent: a response to its start, or an event for the job.
func (r *remoteAgent) handle(m wire.Message) {
	switch m.Kind {
	case wire.KindReady:
		r.respond(nil)
	case wire.KindRefused:
		r.respond(r.refusalOf(m.Fault))
	case wire.KindGone:
		r.once.Do(func() { close(r.gone) })
	case wire.KindRelayEnded:
		r.relayEnded(m)
	default:
		r.job.post(event{kind: ofAgent, host: r.host, message: m})
	}
}

// manage serves the stream of a rank's connection with the process manager.
func (r *remoteAgent) manage(m wire.Message, stream *wire.Stream) {
	if m.Kind != wire.KindManager || m.Rank < 0 || m.Rank >= r.job.size || r.job.ranks[m.Rank].host != r.host {
		stream.Close() //nolint:errcheck // nothing was sent
		return
	}
	r.job.manage(m.Rank, stream)
}

// begin opens the streams of the ranks and has the agent start them.
func (r *remoteAgent) begin() {
	go func() {
		for _, rank := range r.host.plan.Ranks {
			if err := r.openStreams(rank); err != nil {
				r.session.Close() // the loss of the host ends the job
				return
			}
		}
		r.send(wire.Message{Kind: wire.KindGo})
	}()
}

// openStreams opens the streams of a rank.
func (r *remoteAgent) openStreams(rank wire.Rank) error {
	if rank.Stdin {
		stream, err := r.session.Open(wire.Message{Kind: wire.KindStdin, Rank: rank.Rank})
		if err != nil {
			return err
		}
		r.job.input.add(stream)
	}
	var out [2]io.Reader
	for i, has := range []bool{r.host.plan.Stdout, r.host.plan.Stderr} {
		if !has {
			continue
		}
		stream, err := r.session.Open(wire.Message{Kind: wire.KindStdout + wire.Kind(i), Rank: rank.Rank})
		if err != nil {
			return err
		}
		out[i] = stream
	}
	return r.job.output.carry(rank.Rank, out[0], out[1])
}

// Signal does not wait for a host that takes no message; such a host is lost soon. But this
// process must not stop before the host has the message.
func (r *remoteAgent) Signal(sig syscall.Signal) {
	if !r.listens.Load() {
		return
	}
	select {
	case r.signals <- sig:
	default:
	}
	if sig == syscall.SIGTSTP {
		select {
		case <-r.stopped:
		case <-r.gone:
		case <-time.After(stopWait):
		}
	}
}

// sendSignals sends signals in order until the session ends.
func (r *remoteAgent) sendSignals() {
	for {
		select {
		case sig := <-r.signals:
			r.send(wire.Message{Kind: wire.KindSignal, Signal: int(sig)})
			if sig == syscall.SIGTSTP {
				select {
				case r.stopped <- struct{}{}:
				default:
				}
			}
		case <-r.session.Done():
			return
		}
	}
}

func (r *remoteAgent) send(m wire.Message) {
	r.session.Send(m) //nolint:errcheck // listen sees the end of the session
}

// Sweep waits until the agent has ended everything on its host, or is lost: then it does so
// by itself. The silence of the agent bounds the wait.
func (r *remoteAgent) Sweep() {
	if !r.listens.Load() {
		return
	}
	r.send(wire.Message{Kind: wire.KindEnd})
	select {
	case <-r.gone:
	case <-r.session.Done():
	}
}

// Close ends the session and the command that made it. Agents that are reached through
// this one close first.
func (r *remoteAgent) Close() {
	defer close(r.closed)
	for _, child := range r.children {
		<-child.closed
	}
	if r.session != nil {
		r.session.Close()
		r.said = r.link.Wait().Said
	}
}

// crash is the front of the line that says why a Go program crashed.
var crash = regexp.MustCompile(`(?m)^(panic|fatal error|runtime|SIG[A-Z]+): .*$`)

// quoted returns the line of a text that says most, behind a colon: that of a crash, or
// the last one.
func quoted(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	if line := crash.FindString(text); line != "" {
		return ": " + line
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}

func waitStatus(m wire.Message) syscall.WaitStatus { return syscall.WaitStatus(m.Status) }
