package farheap

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Server is the end of a Heap where its memory lies.
type Server struct{ end *side }

// Serve gives memory of this rank to another rank of t, the client, which uses it through
// Open with the same name and size. Serve does not wait for that. Kind: local.
func Serve(ctx context.Context, t *runtime.Team, client int, opts ...Option) (*Server, error) {
	s := &Server{}
	err := open[byte](wait.Context(ctx), "Serve", t, client, false, opts, func(end *side) error {
		s.end = end
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Wait returns when the client has closed the heap. It ends early with the
// client's death. Nothing of what the client does before needs it. Kind: local,
// but that it connects the two.
func (s *Server) Wait(ctx context.Context) error {
	err := s.end.Usable()
	if err == nil {
		err = s.end.gate.pass(wait.Context(ctx), s.end.waitForPeer)
	}
	return s.end.Fail("Wait", err)
}

// waitForPeer connects to the client, and returns when the client has closed the heap.
func (s *side) waitForPeer(ctx context.Context) error {
	if err := s.meet(ctx); err != nil {
		return err
	}
	return s.Await(ctx, s.peerGone)
}

// Close takes the memory back as soon as the client uses it no more. One that has
// not closed the heap gets errors from now on; the memory stays until it closes.
// The second call does nothing. Kind: one-sided.
func (s *Server) Close(ctx context.Context) error {
	return s.end.Fail("Close", s.end.close(wait.Context(ctx)))
}

// Name returns the heap's name with its incarnation, such as "cache#0". Kind:
// local.
func (s *Server) Name() string { return s.end.Name }
