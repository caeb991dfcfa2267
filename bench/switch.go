//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// bench/main.go explains the use of internal/fabric here.

// switchMapped prepares writes to mapped memory.
func switchMapped(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return task{}, errSkip
	}
	return h.forced(ctx, "mapped", size, func(r *fabric.Remote, src []byte) choice {
		return choice{taken: true, write: func(context.Context) error {
			copy(r.Mem, src)
			return r.Peer.FlushMapped()
		}}
	})
}

// switchFMA prepares writes that the post copies.
func switchFMA(ctx context.Context, h *harness, size int) (task, error) {
	if size > h.MaxFMA {
		return task{}, errSkip
	}
	return h.forced(ctx, "fma", size, queued(fabric.FMA))
}

// switchBulk prepares writes that leave from the caller's slice.
func switchBulk(ctx context.Context, h *harness, size int) (task, error) {
	return h.forced(ctx, "bulk", size, queued(fabric.Bulk))
}

// A choice is a way to write, and whether a window would choose it.
type choice struct {
	taken bool
	write func(ctx context.Context) error
}

// queued writes through the queue in a given path.
func queued(path fabric.Path) func(*fabric.Remote, []byte) choice {
	return func(r *fabric.Remote, src []byte) choice {
		return choice{taken: r.Mem == nil && r.Peer.PathOf(len(src)) == path, write: func(ctx context.Context) error {
			req, err := r.Start(ctx, &fabric.Put{Body: fabric.Part{Mem: src, Path: path}, Lent: true})
			if err != nil {
				return err
			}
			if err := req.Wait(ctx); err != nil {
				return err
			}
			return r.Peer.Flush(ctx)
		}}
	}
}

// forced makes a task of one way to write to a region of the target.
func (h *harness) forced(ctx context.Context, name string, size int, choose func(*fabric.Remote, []byte) choice) (task, error) {
	team := team.Of(h.world)
	block, err := team.Arena().Alloc(size)
	if err != nil {
		return task{}, err
	}
	name = "bench/" + name
	region, err := team.Register(ctx, name, block.Memory)
	if err != nil {
		return task{}, err
	}
	t := task{free: func(ctx context.Context) error { return h.withdraw(ctx, region, block) }}
	if err := h.world.Barrier(ctx); err != nil {
		return t, err
	}
	src := make([]byte, size)
	t.prepare = h.renew(src, block.Bytes)
	t.run = h.origin(nil)
	if h.rank != 0 {
		return t, nil
	}
	remote, err := team.Resolve(ctx, team.Members[target], name)
	if err != nil {
		return t, err
	}
	c := choose(remote, src)
	t.taken = c.taken
	t.run = func(ctx context.Context, n int) error {
		for range n {
			if err := c.write(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return t, nil
}

// withdraw frees a region once no rank uses it. Kind: collective.
func (h *harness) withdraw(ctx context.Context, region *fabric.Region, block arena.Block) error {
	if err := h.world.Barrier(ctx); err != nil {
		return err
	}
	return team.Of(h.world).GiveBack(region, block)
}
