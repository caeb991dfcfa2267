package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Server is the end of a Heap where its memory lies.
type Server struct{ end *serverEnd }

// ServeHeap gives memory of this rank to another rank of t, which uses it through
// OpenHeap with the same name and size. It does not wait for that. WithName,
// WithHeap (how much memory) and WithCarrier have an effect. Kind: local.
func ServeHeap(ctx context.Context, t *runtime.Team, client int, opts ...Option) (*Server, error) {
	ctx = wait.Context(ctx)
	p, team, err := draft[byte](t, client, opts)
	if err != nil {
		return nil, p.fail("ServeHeap", err)
	}
	s := &Server{}
	err = p.enterHeap(ctx, team, serversEnd, func() (stopper, error) {
		s.end = &serverEnd{heapSide: heapSide{pipe: p, gate: newGate()}}
		return s.end, nil
	})
	if err != nil {
		return nil, p.fail("ServeHeap", err)
	}
	return s, nil
}

// Wait returns when the client has closed the heap. It ends early with the
// client's death. Nothing of what the client does before needs it. Kind: local,
// but that it connects the two.
func (s *Server) Wait(ctx context.Context) error {
	return s.end.fail("Wait", s.end.wait(wait.Context(ctx)))
}

// Close takes the memory back as soon as the client uses it no more. One that has
// not closed the heap gets errors from now on; the memory stays until it closes.
// The second call does nothing. Kind: one-sided.
func (s *Server) Close(ctx context.Context) error {
	return s.end.fail("Close", s.end.close(wait.Context(ctx)))
}

// Name returns the heap's name with its incarnation, such as "cache#0". Kind:
// local.
func (s *Server) Name() string { return s.end.name }

type serverEnd struct {
	heapSide
	unused bool // the client had closed the heap before the two were connected
}

func (s *serverEnd) wait(ctx context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.gate.pass(ctx, func(ctx context.Context) error {
		if !s.joined.Load() {
			_, unused, err := s.join(ctx, true)
			if err != nil {
				return err
			}
			s.unused = unused
		}
		if s.unused {
			return nil
		}
		return s.await(ctx, []int{goneFlag}, func() bool { return s.flag(goneFlag) != 0 })
	})
}

func (s *serverEnd) close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.gate.shut()
	err := s.farewell(ctx)
	s.registry.exit(s, s)
	return err
}
