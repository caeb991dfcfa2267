package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// OpenDuplex opens this rank's ends of two pipes with another rank of t, one each way:
// both or neither. This rank writes the pipe named out, and reads the pipe named in. The
// other rank swaps the names. Both pipes have opts. The k-th pair that one rank
// opens meets the k-th of the other rank. Errors are those of OpenWriter. Kind: local.
func OpenDuplex[T any](ctx context.Context, t *runtime.Team, peer int, out, in string, opts ...Option) (*Writer[T], *Reader[T], error) {
	opts = opts[:len(opts):len(opts)]
	var o pipe.Opening
	w, err := addWriter[T](&o, t, peer, append(opts, WithName(out)))
	if err != nil {
		return nil, nil, err
	}
	r, err := addReader[T](&o, t, peer, append(opts, WithName(in)))
	if r, err = opened(wait.Context(ctx), &o, r, err); err != nil {
		return nil, nil, err
	}
	return w, r, nil
}

// opened returns an end once all gathered ends are open, unless there was an error before.
func opened[E any](ctx context.Context, o *pipe.Opening, end *E, err error) (*E, error) {
	if err == nil {
		err = o.Open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return end, nil
}

// addReader gathers the end of a pipe from a rank. It is there once open was called.
func addReader[T any](o *pipe.Opening, t *runtime.Team, writer int, opts []Option) (*Reader[T], error) {
	r, err := pipe.AddReader[T](o, t, writer, opts)
	return (*Reader[T])(r), err
}

// addWriter gathers the end of a pipe to a rank. It is there once open was called.
func addWriter[T any](o *pipe.Opening, t *runtime.Team, reader int, opts []Option) (*Writer[T], error) {
	w, err := pipe.AddWriter[T](o, t, reader, opts)
	return (*Writer[T])(w), err
}
