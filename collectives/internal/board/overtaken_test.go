package board

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
)

// A deaf bell loses each ring, as one does whose ringer looks before its store is visible.
type deaf struct{ *wait.Bell }

func (deaf) Ring() {}

// deafRig returns a team of two that loses all rings between its members.
func deafRig(t *testing.T) *rig {
	r := newRig(t, 2, measured(2, false))
	for m, b := range r.boards {
		b.find = func(_ context.Context, _ []int, found Found) error { return found(1-m, r.mem[1-m], deaf{r.bells[1-m]}) }
	}
	return r
}

// untilParked returns once member m sleeps.
func (r *rig) untilParked(t *testing.T, m int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.bells[m].Parks() > 0 }, testwatch.Patience(), time.Millisecond)
}

// TestMemberThatMissesARingSeesThePostAfterAPause lets the root post behind a sleeping member.
func TestMemberThatMissesARingSeesThePostAfterAPause(t *testing.T) {
	r, ctx := deafRig(t), testwatch.Context(t)
	got, done := make([]byte, 8), make(chan error, 1)
	go func() { done <- r.boards[1].Broadcast(ctx, 1, 1, &Args{Elem: 8, Recv: got}) }()
	r.untilParked(t, 1)
	require.NoError(t, r.boards[0].Broadcast(ctx, 1, 1, &Args{Elem: 8, Recv: []byte("sentence")}))
	require.NoError(t, <-done)
	require.Equal(t, "sentence", string(got))
}

// TestMemberThatMissesARingSeesTheTurnThatOthersLeftAfterAPause lets a root run ahead until it
// sleeps.
func TestMemberThatMissesARingSeesTheTurnThatOthersLeftAfterAPause(t *testing.T) {
	r, ctx := deafRig(t), testwatch.Context(t)
	calls := func(m int) error {
		for i := range uint64(2 * lines) {
			if err := r.boards[m].Broadcast(ctx, i, i, &Args{Elem: 8, Recv: make([]byte, 8)}); err != nil {
				return err
			}
		}
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- calls(0) }()
	r.untilParked(t, 0)
	require.NoError(t, calls(1))
	require.NoError(t, <-done)
}
