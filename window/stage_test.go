package window_test

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// A stage holds the windows of a program at one rank, by way.
type stage struct {
	r       *testjob.Rank
	windows [ways]*window.Window[uint64]
	queue   *window.Queue
	// giveBack frees the memory of a device, once the windows are free.
	giveBack func()

	heads    *window.Window[window.Pointer[uint64]] // of each rank's attached memory
	mine     window.Pointer[uint64]
	attached []uint64

	access   window.Access
	exposure window.Exposure
}

func newStage(ctx context.Context, r *testjob.Rank, at home, kind driver.Kind) (s *stage, err error) {
	s = &stage{r: r, giveBack: func() {}}
	if s.queue, err = window.NewQueue(r.World); err != nil {
		return nil, err
	}
	var w *window.Window[uint64]
	switch at {
	case lentHome:
		w, err = window.Create(ctx, r.World, make([]uint64, s.length(0)), window.WithAttachments(2))
	case deviceHome:
		var p *device.Piece
		p, s.giveBack = piece(r, 8*s.length(0), kind)
		w, err = window.AllocateV[uint64](ctx, r.World, s.length(0), window.WithAttachments(2), window.On(p, device.Bounce))
	default:
		w, err = window.AllocateV[uint64](ctx, r.World, s.length(0), window.WithAttachments(2))
	}
	if err != nil {
		return nil, err
	}
	if s.heads, err = window.Allocate[window.Pointer[uint64]](ctx, r.World, 1); err != nil {
		return nil, err
	}
	return s, errors.Join(s.set(w), s.reattach(ctx))
}

// length returns this rank's number of elements after some renewals, those of the program among them.
func (s *stage) length(renewed int) int { return elements + (s.r.Me+renewed)%3 }

// set makes w the window of the program, with its parts.
func (s *stage) set(w *window.Window[uint64]) (err error) {
	s.windows[direct] = w
	if s.windows[behind], err = window.Part[uint64](w, 16, elements-2); err == nil {
		s.windows[queued], err = w.Through(s.queue)
	}
	return err
}

// reattach replaces this rank's attached memory by a copy, and tells all ranks.
func (s *stage) reattach(ctx context.Context) error {
	w := s.windows[direct]
	p, fresh, err := w.Attach(ctx, runLength)
	if err != nil {
		return err
	}
	copy(fresh, s.attached)
	if !s.mine.IsNil() {
		err = w.Detach(ctx, s.mine)
	}
	s.mine, s.attached = p, fresh
	s.heads.Local()[0] = p
	return errors.Join(err, s.r.World.Barrier(ctx))
}

// reallocate replaces the window. Its attachments end with it.
func (s *stage) reallocate(ctx context.Context, round int) error {
	kept := append([]uint64(nil), s.attached...)
	w, err := s.windows[direct].Realloc(ctx, s.length(round+1))
	if err == nil {
		err = s.set(w)
	}
	if err != nil {
		return err
	}
	s.mine, s.attached = window.Pointer[uint64]{}, kept
	return s.reattach(ctx)
}

// renew replaces memory after a round.
func (s *stage) renew(ctx context.Context, number int, what renewal) error {
	switch what {
	case reallocate:
		return s.reallocate(ctx, number)
	case reattach:
		return s.reattach(ctx)
	}
	return nil
}

// begin starts a round.
func (s *stage) begin(ctx context.Context, r *round) (err error) {
	if !r.epoch {
		return nil
	}
	all := make([]int, s.r.N)
	for i := range all {
		all[i] = (s.r.Me + i) % s.r.N
	}
	if s.exposure, err = s.windows[direct].Post(ctx, all); err == nil {
		s.access, err = s.windows[direct].Start(ctx, all)
	}
	return err
}

// end ends a round: this rank then sees what all ranks did.
func (s *stage) end(ctx context.Context, r *round) error {
	if err := s.queue.FlushAll(ctx); err != nil {
		return err
	}
	if !r.epoch {
		return s.windows[direct].Fence(ctx)
	}
	if err := s.access.Complete(ctx); err != nil {
		return err
	}
	return s.exposure.Wait(ctx)
}
