package fabric

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
)

// A rank may request a region before its owner registers it. The owner tells the rank
// once the region is registered:
//
//	origin                          owner
//	region, Await    ->            not found: remember the origin
//	                 <- Absent
//	wait on the bell               Register(name)
//	                 <-            region-ready
//	region           ->            found
//
// The owner looks and remembers the origin in one step under the table's mutex. It also
// registers and finds the ranks that wait in one step, and so forgets none in between. The message
// may be lost all the same: the origin requests it again, ever more rarely (requestAgain).

// An awaited names a region that a goroutine of this rank waits for.
type awaited struct {
	rank  int
	name  string
	ready atomic.Bool
}

// AwaitRegion resolves a region as Resolve does, but first waits until rank has
// registered it. It ends early with the rank's error, or with the cause of ctx's end.
func (f *Fabric) AwaitRegion(ctx context.Context, rank int, name string) (*Remote, error) {
	return f.awaitConnected(ctx, rank, name, func() error { return f.health.of(rank) })
}

// AwaitOffer is AwaitRegion that also ends early if rank has left.
func (f *Fabric) AwaitOffer(ctx context.Context, rank int, name string) (*Remote, error) {
	return f.awaitConnected(ctx, rank, name, func() error { return f.Presence(rank, name) })
}

// awaitConnected connects to rank, and then is AwaitRegion that ends early once fate returns an
// error.
func (f *Fabric) awaitConnected(ctx context.Context, rank int, name string, fate func() error) (*Remote, error) {
	ctx = wait.Context(ctx)
	p, err := f.PeerFor(ctx, rank, name)
	if err != nil {
		return nil, err
	}
	return f.awaitRegion(ctx, &awaited{rank: rank, name: name}, requestAgain, fate, func() (*Remote, error) { return f.requestRegion(ctx, p, name) })
}

// awaitRegion calls request until a region is there, or until fate returns an error. It calls again
// after patience at first.
func (f *Fabric) awaitRegion(ctx context.Context, a *awaited, patience time.Duration, fate func() error, request func() (*Remote, error)) (*Remote, error) {
	f.regions.expect(a)
	defer f.regions.forget(a)
	for ; ; patience = min(2*patience, requestAgainMost) {
		r, err := request()
		if r != nil || err != nil {
			return r, err
		}
		if err := f.awaitReady(ctx, a, patience, fate); err != nil {
			return nil, err
		}
	}
}

// A rank that waits for a region requests it again after requestAgain. It doubles the time
// with each attempt, up to requestAgainMost.
const (
	requestAgain     = time.Second
	requestAgainMost = 16 * time.Second
)

var errRequestAgain = errors.New("no word of the region so far")

// TryRegion resolves a region as Resolve does, but returns a nil Remote while rank has
// no such region.
func (f *Fabric) TryRegion(ctx context.Context, rank int, name string) (*Remote, error) {
	p, err := f.PeerFor(ctx, rank, name)
	if err != nil {
		return nil, err
	}
	return f.requestRegion(ctx, p, name)
}

// requestRegion looks for a region once. It returns a nil Remote while the region is not there;
// the owner then tells this rank later.
func (f *Fabric) requestRegion(ctx context.Context, p *Peer, name string) (*Remote, error) {
	if p.bind == nil {
		if r := f.regions.find(name); r != nil {
			return &Remote{Peer: p, Len: len(r.mem.Bytes), Mem: r.mem.Bytes}, nil
		}
		f.regions.wanted(name, p.rank)
		return nil, nil
	}
	if rep, found := p.find(name); found {
		return f.remote(ctx, p, rep)
	}
	var rep regionReply
	err := f.call(ctx, p.rank, "region", regionRequest{Provider: p.bind.name, Name: name, Await: true}, &rep)
	if rep.Left {
		f.regionsLeft(p.rank, name)
	}
	if err != nil || rep.Absent {
		return nil, err
	}
	return f.remote(ctx, p, rep)
}

// awaitReady waits until the owner tells that a's region is there, but no longer than
// patience. The caller then requests it again.
func (f *Fabric) awaitReady(ctx context.Context, a *awaited, patience time.Duration, fate func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errRequestAgain)
	defer cancel()
	var gone error
	seen := f.Health() - 1
	err := f.Wait(ctx, func() bool {
		if a.ready.Load() {
			return true
		}
		if now := f.Health(); now != seen {
			seen, gone = now, fate()
		}
		return gone != nil || f.closed.Load()
	})
	switch {
	case a.ready.Swap(false), errors.Is(err, errRequestAgain):
		return nil
	case gone != nil:
		return gone
	case err != nil:
		return err
	}
	return ErrClosed
}

// expect enters a goroutine that waits for a region.
func (t *regionTable) expect(a *awaited) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.awaited[a.name] = append(t.awaited[a.name], a)
}

// forget takes a wait off the list, as its caller gives up. The region's registration wakes it no more.
func (t *regionTable) forget(a *awaited) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var others []*awaited
	for _, b := range t.awaited[a.name] {
		if b != a {
			others = append(others, b)
		}
	}
	if t.awaited[a.name] = others; others == nil {
		delete(t.awaited, a.name)
	}
}

// wanted returns the region of a name, or remembers that rank from requested it. left reports
// whether this rank has left.
func (t *regionTable) wanted(name string, from int) (r *Region, left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.byName[name]; r != nil {
		return r, t.left
	}
	if t.waiters[name] == nil {
		t.waiters[name] = map[int]bool{}
	}
	t.waiters[name][from] = true
	return nil, t.left
}

// readyMessage tells a rank that a region is there, by the service "region-ready".
type readyMessage struct{ Name string }

// tellReady tells the ranks that wait that a region is there now. A rank that misses the message
// requests the region again.
func (f *Fabric) tellReady(name string, waiters map[int]bool) {
	for rank := range waiters {
		f.making.Go(func() {
			if rank == f.cfg.Rank {
				f.regionReady(rank, readyMessage{name})
				return
			}
			_ = f.call(f.ctx, rank, "region-ready", readyMessage{name}, &struct{}{})
		})
	}
}

// regionReady notes that a region of another rank is there.
func (f *Fabric) regionReady(from int, m readyMessage) {
	f.regions.mu.Lock()
	for _, a := range f.regions.awaited[m.Name] {
		if a.rank == from {
			a.ready.Store(true)
		}
	}
	f.regions.mu.Unlock()
	f.bell.Ring()
}

// serveRegion handles another rank's request for a region of this rank, by its number or its name. With
// Await, a region that is not there yet is noted: its registration tells the other rank.
func (f *Fabric) serveRegion(from int, req regionRequest) (regionReply, error) {
	b := f.binding(req.Provider)
	if req.ID != 0 {
		return f.regionOver(b, f.regions.numbered(req.ID), from, req)
	}
	r := f.regions.find(req.Name)
	if r == nil && req.Await && b != nil {
		var left bool
		if r, left = f.regions.wanted(req.Name, from); r == nil {
			return regionReply{Absent: true, Left: left}, nil
		}
	}
	return f.regionOver(b, r, from, req)
}
