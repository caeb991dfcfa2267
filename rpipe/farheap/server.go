package farheap

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Server is the end of a Heap where its memory lies.
type Server struct{ end *serverEnd }

// Serve gives memory of this rank to another rank of t, the client, which uses it through
// Open with the same name and size. Serve does not wait for that. Kind: local.
func Serve(ctx context.Context, t *runtime.Team, client int, opts ...Option) (*Server, error) {
	ctx = wait.Context(ctx)
	p, team, err := pipe.Draft[byte](t, client, collect(opts))
	if err != nil {
		return nil, p.Fail("Serve", err)
	}
	s := &Server{}
	err = enter(ctx, p, team, serversEnd, func() error {
		s.end = &serverEnd{side: newSide(p)}
		return nil
	})
	if err != nil {
		return nil, p.Fail("Serve", err)
	}
	return s, nil
}

// Wait returns when the client has closed the heap. It ends early with the
// client's death. Nothing of what the client does before needs it. Kind: local,
// but that it connects the two.
func (s *Server) Wait(ctx context.Context) error {
	return s.end.Fail("Wait", s.end.wait(wait.Context(ctx)))
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

type serverEnd struct {
	*side
	unused bool // the client had closed the heap before the two were connected
}

func (s *serverEnd) wait(ctx context.Context) error {
	if err := s.Usable(); err != nil {
		return err
	}
	return s.gate.pass(ctx, func(ctx context.Context) error {
		if !s.Joined.Load() {
			_, unused, err := s.Join(ctx, true)
			if err != nil {
				return err
			}
			s.unused = unused
		}
		if s.unused {
			return nil
		}
		return s.Await(ctx, []int{goneFlag}, func() bool { return s.Flag(goneFlag) != 0 })
	})
}

func (s *serverEnd) close(ctx context.Context) error {
	if s.Closed.Swap(true) {
		return nil
	}
	s.gate.shut()
	return s.depart(ctx)
}
