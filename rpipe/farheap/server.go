package farheap

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// A Server is the end of a Heap where its memory lies.
type Server struct {
	end     *pipe.Reader
	waiting turn.Turn // of the goroutine in Wait
}

// Serve gives memory of this rank to another rank of t, the client, which uses it through
// Open with the same name and size. Serve does not wait for that. Kind: local.
func Serve(ctx context.Context, t *runtime.Team, client int, opts ...Option) (*Server, error) {
	end, err := open[byte](ctx, "Serve", t, client, false, opts, pipe.NewReaderEnd)
	if err != nil {
		return nil, err
	}
	return &Server{end, turn.New()}, nil
}

// Wait returns when the client has closed the heap. It ends early with the
// client's death. Nothing of what the client does before needs it. Kind: local,
// but that it connects the two.
func (s *Server) Wait(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if err := s.waiting.Take(ctx); err != nil {
		return s.end.Fail("Wait", err)
	}
	defer s.waiting.Give()
	_, _, err := s.end.ReadBlock(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return s.end.Fail("Wait", err)
}

// Close takes the memory back as soon as the client uses it no more. One that has
// not closed the heap gets errors from now on; the memory stays until it closes.
// The second call does nothing. Kind: one-sided.
func (s *Server) Close(ctx context.Context) error {
	return s.end.Fail("Close", s.end.Close(wait.Context(ctx)))
}

// Name returns the heap's name with its incarnation, such as "cache#0". Kind:
// local.
func (s *Server) Name() string { return s.end.Name }
