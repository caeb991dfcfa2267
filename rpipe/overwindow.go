package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/overwindow"
	"github.com/gopgas/gopgas/runtime"
)

// A WindowPool is a window that carries pipes, which then use nothing but the window's
// public calls. Its method Close ends the pool at all ranks and gives its memory back;
// pipes over it are closed before. Kind of Close: collective.
type WindowPool = overwindow.Pool

// OverWindow makes a window on t that carries pipes: at each rank up to so many
// ends at a time. The pipes have these options, or smaller heaps, widths and numbers of
// blocks. All ranks give the same, and 1 to 65536 ends. Open the pipes WithWindow.
// Other values are runtime.ErrRange, different ones runtime.ErrMismatch. After an error
// at one rank no rank has a pool. Kind: collective.
func OverWindow(ctx context.Context, t *runtime.Team, ends int, opts ...Option) (*WindowPool, error) {
	return overwindow.New(ctx, t, ends, opts...)
}
