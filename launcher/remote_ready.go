//go:build linux

package launcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/agent"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

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
		return fmt.Errorf("start %s: %w", backend.Name(), startRemedy(err))
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
	r.job.serve(r.session.Listener(r.manage))
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

// refusalOf returns the error of a plan that the agent refuses. prepare adds the host unless a
// program is missing.
func (r *remoteAgent) refusalOf(f *wire.Fault) error {
	if f == nil || f.Program == "" {
		return agent.ErrorOf(f, "")
	}
	return agent.ErrorOf(f, r.host.name)
}

// respond passes on the agent's response to the plan, once.
func (r *remoteAgent) respond(err error) {
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
			r.respond(fmt.Errorf("copy %s: %w", program.Name, err))
			return
		}
	}
}

// sendProgram sends a program to the agent, which keeps it for the time of the job.
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

// startRemedy says what to do about a command that does not start.
func startRemedy(err error) error {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return agent.Remedy(err)
	}
	return fmt.Errorf("%w; install it, or name another command with --ssh-cmd", err)
}
