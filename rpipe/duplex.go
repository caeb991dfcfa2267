package rpipe

import (
	"context"

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
	w := pipe.AddWriter[T](&o, t, peer, append(opts, WithName(out)))
	r := pipe.AddReader[T](&o, t, peer, append(opts, WithName(in)))
	if err := o.Open(ctx); err != nil {
		return nil, nil, err
	}
	return (*Writer[T])(w), (*Reader[T])(r), nil
}
