//go:build linux

package launcher

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/agent"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// startAll begins to make all hosts ready.
func (j *job) startAll() {
	ctx, cancel := context.WithCancelCause(context.Background())
	j.starting = cancel
	j.makeRemotes()
	go func() { j.post(event{kind: assembled, err: j.assemble(ctx)}) }()
}

// assembled starts the ranks once all hosts are ready.
func (j *job) assembled(err error) {
	j.starting(nil)
	j.starting = nil
	for _, h := range j.hosts {
		if err == nil && h.lost {
			err = fmt.Errorf("host %s was lost before its ranks started: %w", h.name, h.loss)
		}
	}
	switch {
	case j.ended || j.stopping != 0: // that was the reason
	case err != nil:
		j.err = err
		j.end()
	default:
		j.begin()
	}
}

// begin has all agents start their ranks. From now on an agent that reads errors is awaited at the
// end.
func (j *job) begin() {
	j.begun = true
	j.alive = j.size
	for _, h := range j.hosts {
		if j.errors != nil {
			j.reading++
		}
		h.agent.begin()
	}
}

// hear handles a message of a host's agent.
func (j *job) hear(h *host, m wire.Message) {
	switch m.Kind {
	case wire.KindStarted:
		h.started = true
		j.started()
	case wire.KindErrorsRead:
		j.endErrors(h)
	case wire.KindExited, wire.KindNotStarted, wire.KindFinalError:
		if m.Rank >= 0 && m.Rank < j.size && j.ranks[m.Rank].host == h {
			j.hearOf(j.ranks[m.Rank], m)
		}
	}
}

// hearOf handles a message about a rank.
func (j *job) hearOf(p *process, m wire.Message) {
	switch {
	case m.Kind == wire.KindFinalError:
		if j.errors != nil && j.errors.add(m.Rank, m.Text) {
			j.output.printFor(m.Rank, m.Text)
		}
	case p.ended, p.exited:
	case m.Kind == wire.KindNotStarted:
		p.ended, p.absent = true, true
		j.alive--
		if j.err == nil {
			j.err = agent.ErrorOf(m.Fault, p.host.foreignName())
		}
		j.end()
	default:
		p.exited, p.status = true, waitStatus(m)
		if m.Fault != nil {
			j.err = agent.ErrorOf(m.Fault, p.host.foreignName())
		}
		j.exited(p)
	}
}

// died announces the end of a rank to the others, which wait for it no more.
func (j *job) died(p *process, cause string) {
	j.server.RankDied(p.rank, cause)
	if !p.left {
		j.manager.RankDied(p.rank)
	}
}

// foreignName returns the name of another host, "" for this one.
func (h *host) foreignName() string {
	if h.here {
		return ""
	}
	return h.name
}

// started begins the work that waits until every rank runs its program.
func (j *job) started() {
	if slices.ContainsFunc(j.hosts, func(h *host) bool { return !h.started }) {
		return
	}
	j.input.start()
	if j.spec.Started != nil {
		j.spec.Started()
	}
}

// endErrors notes that no more final errors come from a host.
func (j *job) endErrors(h *host) {
	if j.errors != nil && !h.errorsRead {
		h.errorsRead = true
		j.reading--
	}
}

// loseHost declares the ranks of a host dead at once: no message of its agent will come.
func (j *job) loseHost(h *host, why error) {
	h.lost, h.loss = true, why
	if !j.begun {
		return // assemble or assembled returns the error
	}
	j.endErrors(h)
	for _, p := range h.ranks {
		if p.ended {
			continue
		}
		p.ended, p.lost = true, true
		j.alive--
		reason := fmt.Sprintf("was lost with its host: %v", why)
		j.died(p, reason+" ("+h.name+")")
		j.fail(p, Failure{Code: codeOf(why), Reason: reason})
	}
}

// awaitJoins sets the alarm for ranks that have not joined.
func (j *job) awaitJoins() {
	switch j.joins {
	case j.size:
		j.late.off()
	case 1:
		j.late.set(defaultStartTimeout)
	}
}

// nameLate names the ranks for which the others wait in Init. The rendezvous ends the
// start, if the user has set a bound.
func (j *job) nameLate() {
	var late []int
	for _, p := range j.ranks {
		if !p.joined && !p.ended {
			late = append(late, p.rank)
		}
	}
	if len(late) > 0 {
		text := fmt.Sprintf("%s did not call %s within %v of the first rank, which waits for them", bootstrap.Ranks(late), speaks(j.mpi).begin, defaultStartTimeout)
		if !j.mpi {
			text += "; --start-timeout bounds the wait"
		}
		j.note(text)
	}
}

// note prints a line for the user.
func (j *job) note(text string) {
	if j.spec.Stderr != nil {
		fmt.Fprintln(j.spec.Stderr, "grun:", text)
	}
}
