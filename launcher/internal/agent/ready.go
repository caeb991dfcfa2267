//go:build linux

package agent

import (
	"fmt"
	"net"
	"slices"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// accepted begins the preparations for a plan.
func (s *server) accepted(plan *wire.Plan) {
	if plan == nil || plan.Check() != nil || s.plan.JobID != "" || plan.JobID == "" {
		s.refuse(fmt.Errorf("%w: the plan is impossible", wire.ErrWire))
		return
	}
	s.plan = *plan
	for _, p := range plan.Programs {
		if p.Staged {
			s.staging.Add(1)
		}
	}
	s.preparing.Go(s.prepare)
}

// prepare makes the agent, and tells grun that this host is ready, or why it is not.
func (s *server) prepare() {
	a, err := s.makeAgent()
	if err != nil {
		s.refuse(err)
		return
	}
	s.mu.Lock()
	s.agent = a
	s.mu.Unlock()
	s.post(wire.Message{Kind: wire.KindReady})
}

// makeAgent makes the agent once the programs are there.
func (s *server) makeAgent() (*Agent, error) {
	paths, err := Prepare(s.plan, func(program int) string { return stagedPath(s.plan, program) })
	if err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	go s.relayRanks()
	s.plan.Addr = s.listener.Addr().String()
	return s.receiveAll(paths)
}

// receiveAll takes the programs. The agent's guardians run before, and remove the programs
// if the agent is killed.
func (s *server) receiveAll(paths []string) (*Agent, error) {
	a, err := New(s.plan, paths, s.files, s.post)
	if err != nil {
		return nil, err
	}
	if s.hold, err = s.holdStage(); err != nil {
		a.Sweep()
		a.Close()
		return nil, err
	}
	close(s.planned)
	staged := make(chan struct{})
	go func() {
		s.staging.Wait()
		close(staged)
	}()
	select {
	case <-staged:
	case <-s.ending:
		err = errOver
	}
	s.mu.Lock()
	if err == nil {
		err = s.fault
	}
	s.mu.Unlock()
	if err != nil {
		a.Sweep()
		s.hold.release()
		a.Close()
		return nil, err
	}
	return a, nil
}

// holdStage removes directories of agents that were killed, and holds that of this plan if
// programs come.
func (s *server) holdStage() (hold, error) {
	sweepStages(s.plan.Host)
	if !slices.ContainsFunc(s.plan.Programs, func(p wire.Program) bool { return p.Staged }) {
		return hold{}, nil
	}
	return holdStage(s.plan)
}

// receive takes a program.
func (s *server) receive(m wire.Message, stream *wire.Stream) {
	defer stream.Close() //nolint:errcheck // everything was read
	if !s.begin(&s.receiving, stream) {
		return
	}
	defer s.receiving.Done()
	defer s.staging.Done()
	if err := stage(s.plan, m.Rank, stream, m.Size); err != nil {
		s.mu.Lock()
		s.fault = err
		s.mu.Unlock()
	}
}

func (s *server) refuse(err error) {
	s.post(wire.Message{Kind: wire.KindRefused, Fault: faultOf(err)})
}
