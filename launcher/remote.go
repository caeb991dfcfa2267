package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/agent"
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

func newRemoteAgent(j *job, h *host) *remoteAgent {
	return &remoteAgent{job: j, host: h, reached: make(chan struct{}), refusal: make(chan error, 1),
		gone: make(chan struct{}), closed: make(chan struct{}), signals: make(chan syscall.Signal, 16), stopped: make(chan struct{}, 1)}
}

// prepare reaches the host and has its agent get ready. The error names the host.
func (r *remoteAgent) prepare(ctx context.Context) error {
	err := r.reach(ctx)
	close(r.reached)
	if err == nil {
		err = r.plan(ctx)
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // the connection ended because of it
	}
	if err == nil {
		return nil
	}
	var start *StartError
	if errors.As(err, &start) { // it names the host
		return err
	}
	return fmt.Errorf("host %s: %w", r.host.name, err)
}

// reach starts the agent, through the parent or, where that fails, directly.
func (r *remoteAgent) reach(ctx context.Context) error {
	if r.parent != nil {
		select {
		case <-r.parent.reached:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if r.parent.session != nil && r.connect(ctx, r.parent.relay) == nil {
			return nil
		}
	}
	return r.connect(ctx, r.job.dial)
}

// connect starts the agent over the link that dial makes.
func (r *remoteAgent) connect(ctx context.Context, dial func(command []string) (link, error)) error {
	backend := r.job.spec.Backend
	l, err := dial(backend.Command(r.host.Host, r.job.self.line()))
	if err != nil {
		return fmt.Errorf("start %s: %w; install it, or name another command with --ssh-cmd", backend.Name(), err)
	}
	stop := context.AfterFunc(ctx, l.Kill)
	defer stop()
	conn, err := r.job.greet(l)
	if err != nil {
		l.Close() //nolint:errcheck // it is of no use
		var silence *silentShell
		if errors.As(err, &silence) {
			end := l.Wait()
			err = backend.Explain(r.host.Host, end.Status, cmp.Or(end.Said, silence.said))
		}
		return err
	}
	r.link = l
	return r.open(conn)
}

// open begins a session with the agent. Its first stream is the one for messages.
func (r *remoteAgent) open(conn io.ReadWriteCloser) error {
	session, err := wire.NewSession(conn, true)
	if err != nil {
		return err
	}
	control, err := session.Open(wire.Message{Kind: wire.KindControl, Bound: r.bound()})
	if err != nil {
		session.Close()
		return err
	}
	session.Control(control)
	r.session = session
	return nil
}

// bound returns the bound of the agent's silence, and of grun's.
func (r *remoteAgent) bound() time.Duration {
	return orDefault(r.job.spec.PeerTimeout, bootstrap.DefaultSilence)
}

// plan sends the agent its plan and the programs, and waits until it is ready.
func (r *remoteAgent) plan(ctx context.Context) error {
	stop := context.AfterFunc(ctx, r.session.Close)
	defer stop()
	r.listens.Store(true)
	go r.listen()
	go r.sendSignals()
	go r.session.Watch(r.bound())
	r.job.serve(r.session.Listener())
	if err := r.session.Send(wire.Message{Kind: wire.KindPlan, Plan: &r.host.plan}); err != nil {
		return err
	}
	go r.sendPrograms()
	select {
	case err := <-r.refusal:
		return err
	case <-r.gone:
		return r.loss
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
	end := r.link.Wait()
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

func (r *remoteAgent) handle(m wire.Message) {
	switch m.Kind {
	case wire.KindReady:
		r.answer(nil)
	case wire.KindRefused:
		r.answer(r.refusalOf(m.Fault))
	case wire.KindGone:
		r.once.Do(func() { close(r.gone) })
	case wire.KindRelayEnded:
		r.relayEnded(m)
	default:
		r.job.post(event{kind: ofAgent, host: r.host, message: m})
	}
}

// refusalOf returns the error of a plan that the agent refuses. prepare adds the host unless a
// program is missing.
func (r *remoteAgent) refusalOf(f *wire.Fault) error {
	if f == nil || f.Program == "" {
		return agent.ErrorOf(f, "")
	}
	return agent.ErrorOf(f, r.host.name)
}

// answer passes on the agent's answer to the plan. It answers once.
func (r *remoteAgent) answer(err error) {
	select {
	case r.refusal <- err:
	default:
	}
}

// sendPrograms copies the programs that the plan announces.
func (r *remoteAgent) sendPrograms() {
	for i, program := range r.host.plan.Programs {
		if !program.Staged {
			continue
		}
		if err := r.sendProgram(i); err != nil {
			r.answer(fmt.Errorf("copy %s: %w", program.Name, err))
			return
		}
	}
}

func (r *remoteAgent) sendProgram(number int) error {
	f, err := os.Open(r.job.paths[number])
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	stream, err := r.session.Open(wire.Message{Kind: wire.KindProgram, Rank: number, Size: info.Size()})
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{stream}, f)
	return errors.Join(err, stream.CloseWrite())
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

// signal does not wait for a host that takes no message; such a host is lost soon. But this
// process must not stop before the host has the message.
func (r *remoteAgent) signal(sig syscall.Signal) {
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

// sweep waits until the agent has ended everything on its host, or is lost: then it does so
// by itself. The silence of the agent bounds the wait.
func (r *remoteAgent) sweep() {
	if !r.listens.Load() {
		return
	}
	r.send(wire.Message{Kind: wire.KindEnd})
	select {
	case <-r.gone:
	case <-r.session.Done():
	}
}

// close ends the session and the command that made it. Agents that are reached through
// this one close first.
func (r *remoteAgent) close() {
	defer close(r.closed)
	for _, child := range r.children {
		<-child.closed
	}
	if r.session != nil {
		r.session.Close()
		r.link.Wait()
	}
}

// quoted returns the last line of a text, behind a colon.
func quoted(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}

func waitStatus(m wire.Message) syscall.WaitStatus { return syscall.WaitStatus(m.Status) }
