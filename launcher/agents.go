//go:build linux

package launcher

import (
	"syscall"

	"github.com/gopgas/gopgas/launcher/internal/agent"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// GuardianMain turns this process into a guardian if it was started as one,
// and then does not return. A main that sets Spec.Guardian calls it first.
func GuardianMain() { agent.GuardianMain() }

// agentEnd is grun's end of a host's agent.
type agentEnd interface {
	// begin has the agent start the ranks. It returns before they have started.
	begin()
	// Signal sends all ranks of the host a signal.
	Signal(syscall.Signal)
	// Sweep returns when no process of the job is left on the host.
	Sweep()
	// Close frees everything. The caller has called Sweep.
	Close()
}

// A localAgent is the agent of this host, in this process.
type localAgent struct {
	*agent.Agent
	output *output
}

// newLocalAgent makes the agent of grun's own host, in this process. Its messages become events of
// the job.
func (j *job) newLocalAgent(h *host) (agentEnd, error) {
	a, err := agent.New(h.plan, j.paths, j.files, func(m wire.Message) {
		j.post(event{kind: ofAgent, host: h, message: m})
	})
	if err != nil {
		return nil, err
	}
	return &localAgent{a, j.output}, nil
}

// files hands files to a rank of this host.
func (j *job) files(rank int) (f agent.Files, err error) {
	if f.Stdin, err = j.input.open(rank); err != nil {
		return f, err
	}
	f.Stdout, f.Stderr, f.Owned, err = j.output.open(rank)
	if f.Stdin != nil {
		f.Owned = append(f.Owned, f.Stdin)
	}
	if err != nil {
		return f, err
	}
	manager, err := f.Manage()
	if err != nil {
		return f, err
	}
	go j.manage(rank, manager)
	return f, nil
}

// begin starts the ranks of this host in a goroutine. The job calls it once all agents are ready.
func (l *localAgent) begin() {
	l.output.starts.Go(func() {
		l.Start()
		l.output.begin()
	})
}
