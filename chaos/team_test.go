package chaos

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// teams makes teams of all ranks, each for one collective call in which fuses end contexts.
func (p *player) teams(ctx context.Context) {
	for range 6 {
		team, err := p.World.Split(ctx, 0, 0)
		p.NoError(err, "%v: rank %d: Split", p.trial, p.Me)
		calls := []func(context.Context, *runtime.Team){p.barrier, p.reduce, p.start, p.swapAll, p.split, p.fence, p.window, p.window}
		calls[p.shared.IntN(len(calls))](ctx, team)
		p.mayBeBroken(team.Free(ctx), "Team.Free")
	}
}

// fused makes a collective call with a fuse and reports whether it succeeded here.
func (p *player) fused(ctx context.Context, call string, f func(context.Context) error) bool {
	fuse := drawFuse(ctx, p.own)
	defer fuse.stop()
	err := f(fuse)
	if err != nil && !errors.Is(err, runtime.ErrTeamBroken) && !fuse.excuses(err) {
		p.NoError(err, "%v: rank %d: %s, %s", p.trial, p.Me, call, fuse.name)
	}
	type report struct{ Failed, Ended bool }
	failed, ended := false, false
	for _, r := range swap(ctx, p, report{err != nil, fuse.ended()}) {
		failed, ended = failed || r.Failed, ended || r.Ended
	}
	p.True(ended || !failed, "%v: rank %d: %s failed though no context had ended: %v", p.trial, p.Me, call, err)
	return err == nil
}

func (p *player) barrier(ctx context.Context, team *runtime.Team) {
	p.fused(ctx, "Barrier", team.Barrier)
}

func (p *player) reduce(ctx context.Context, team *runtime.Team) {
	n := []int{1, 100, 5_000, 100_000}[p.shared.IntN(4)]
	in, out := make([]int64, n), make([]int64, n)
	for i := range in {
		in[i] = int64(p.Me*n + i)
	}
	ok := p.fused(ctx, "AllReduce", func(ctx context.Context) error {
		return collectives.AllReduce(ctx, team, collectives.Sum[int64](), in, out)
	})
	for i := range out {
		want := int64(n*p.N*(p.N-1)/2 + p.N*i)
		if ok && out[i] != want {
			p.Equal(want, out[i], "%v: rank %d: AllReduce, element %d", p.trial, p.Me, i)
		}
	}
}

// start starts calls, of which fuses end some.
func (p *player) start(ctx context.Context, team *runtime.Team) {
	in, out := make([]int64, 3*500), make([]int64, 3*500)
	for i := range in {
		in[i] = int64(p.Me + i)
	}
	outer := ctx
	ok := p.fused(ctx, "Start", func(ctx context.Context) (err error) {
		var requests []*collectives.Request
		for i := 0; i < len(in) && err == nil; i += 500 {
			var r *collectives.Request
			call := collectives.AllReduceCall(collectives.Max[int64](), in[i:i+500], out[i:i+500])
			if r, err = collectives.Start(ctx, team, call); err == nil {
				requests = append(requests, r)
			}
		}
		for _, r := range requests {
			err = errors.Join(err, r.Wait(outer))
		}
		return err
	})
	for i := range out {
		if want := int64(p.N - 1 + i); ok && out[i] != want {
			p.Equal(want, out[i], "%v: rank %d: started AllReduce, element %d", p.trial, p.Me, i)
		}
	}
}

func (p *player) swapAll(ctx context.Context, team *runtime.Team) {
	n := []int{1, 300, 20_000}[p.shared.IntN(3)]
	in, out := make([]int64, n*p.N), make([]int64, n*p.N)
	for i := range in {
		in[i] = int64(p.Me*1_000_000 + i)
	}
	ok := p.fused(ctx, "AllToAll", func(ctx context.Context) error { return collectives.AllToAll(ctx, team, in, out) })
	for i := range out {
		want := int64(i/n*1_000_000 + p.Me*n + i%n)
		if ok && out[i] != want {
			p.Equal(want, out[i], "%v: rank %d: AllToAll, element %d", p.trial, p.Me, i)
		}
	}
}

// fence ends a window by calls with fuses.
func (p *player) fence(ctx context.Context, team *runtime.Team) {
	w, err := window.Allocate[int64](ctx, team, 64)
	p.NoError(err)
	p.NoError(w.PutValue(ctx, p.Right(), 0, int64(p.Me)))
	p.NoError(w.PutValue(ctx, p.Left(), 1, int64(p.Me)))
	p.fused(ctx, "Fence and Free", func(ctx context.Context) error {
		if err := w.Fence(ctx); err != nil {
			return err
		}
		p.EqualValues(p.Left(), w.Local()[0], "%v: rank %d: behind a fence", p.trial, p.Me)
		p.EqualValues(p.Right(), w.Local()[1], "%v: rank %d: behind a fence", p.trial, p.Me)
		return w.Free(ctx)
	})
}

// split makes a team of a team. Its members free it if all of them got it.
func (p *player) split(ctx context.Context, team *runtime.Team) {
	var child *runtime.Team
	p.fused(ctx, "Split", func(ctx context.Context) (err error) {
		child, err = team.Split(ctx, p.Me%2, 0)
		return err
	})
	for rank, has := range swap(ctx, p, child != nil) {
		if rank%2 == p.Me%2 && !has {
			return
		}
	}
	p.mayBeBroken(child.Free(ctx), "Free")
}

// mayBeBroken checks an error of a call on a team that a cancellation may have broken.
func (p *player) mayBeBroken(err error, call string) {
	if !errors.Is(err, runtime.ErrTeamBroken) {
		p.NoError(err, "%v: rank %d: %s", p.trial, p.Me, call)
	}
}

// window makes a window that some members may get and some not. Those that got it go on
// writing into it while all members make another one: no write may land there.
func (p *player) window(ctx context.Context, team *runtime.Team) {
	const elements = slabs/8 + 10_000 // one that stays shows beside the slabs
	var doomed *window.Window[int64]
	outer := ctx
	p.fused(ctx, "Allocate", func(ctx context.Context) (err error) {
		if doomed, err = window.Allocate[int64](ctx, team, elements); err == nil {
			p.scribble(outer, doomed) // before a member that gave up has closed its part
		}
		return err
	})
	p.NoError(p.World.Barrier(ctx))
	w, err := window.Allocate[int64](ctx, p.World, elements)
	p.NoError(err)
	p.NoError(w.Fence(ctx))
	p.scribble(ctx, doomed)
	p.NoError(w.Fence(ctx))
	for i, v := range w.Local() {
		if v != 0 {
			p.Zero(v, "%v: rank %d: element %d of a new window", p.trial, p.Me, i)
		}
	}
	p.NoError(w.Free(ctx))
	if doomed != nil {
		p.mayBeBroken(doomed.Free(ctx), "Window.Free")
	}
}

// scribble writes all over this rank's share of a window, as far as it can be reached.
func (p *player) scribble(ctx context.Context, w *window.Window[int64]) {
	if w == nil {
		return
	}
	dead := make([]int64, len(w.Local())/p.N)
	for i := range dead {
		dead[i] = 0xdead
	}
	for target := range p.N {
		err := errors.Join(w.Put(ctx, target, p.Me*len(dead), dead), w.Flush(ctx, target))
		for _, harm := range []error{runtime.ErrRankDead, runtime.ErrUnreachable} {
			p.NotErrorIs(err, harm, p.at("Put", target))
		}
	}
}
