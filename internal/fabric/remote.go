package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Remote is another rank's region, ready for use.
type Remote struct {
	Peer *Peer
	Len  int
	// Mem is the region itself if this process maps it, else nil.
	Mem     []byte
	addr    driver.RemoteAddr
	whole   *Remote // of a stripe's Remote: the Remote that it stands for
	bounce  *bounce // nil: the provider reaches the memory itself
	retired error   // why no goroutine may post any more; under the mutexes of the peer and its stripes
}

// Retire has every later post fail with cause. The target is about to withdraw the region,
// and a request that arrives afterward ends the connection.
func (r *Remote) Retire(cause error) {
	r.Peer.stripes.mu.Lock() // a later stripe sees what this sets
	defer r.Peer.stripes.mu.Unlock()
	for _, p := range append(slices.Clone(r.Peer.stripes.peers), r.Peer) {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	r.retired = cause
}

// Unmapped returns r for operations that a queue pair carries even if this process maps the
// memory: so they keep their order with others that it carries.
func (r *Remote) Unmapped() *Remote {
	return &Remote{Peer: r.Peer, Len: r.Len, addr: r.addr, bounce: r.bounce}
}

// Behind returns the n bytes at offset of the extents behind the region ([driver.Extents]), counted from the region's
// beginning.
func (r *Remote) Behind(offset, n int) *Remote {
	return &Remote{Peer: r.Peer, Len: n, addr: r.addr.Add(uint64(offset))}
}

// origin returns the Remote that a stripe's Remote stands for, or r itself.
func (r *Remote) origin() *Remote {
	if r.whole != nil {
		return r.whole
	}
	return r
}

// Resolve finds the region that rank registered under name. It connects to the rank on
// first use, so it may wait. Callers keep the Remote.
func (f *Fabric) Resolve(ctx context.Context, rank int, name string) (*Remote, error) {
	p, err := f.PeerFor(ctx, rank, name)
	if err != nil {
		return nil, err
	}
	if p.bind == nil {
		r := f.regions.find(name)
		if r == nil {
			return nil, fmt.Errorf("%w: no region %q", driver.ErrInvalid, name)
		}
		return &Remote{Peer: p, Len: len(r.mem.Bytes), Mem: r.mem.Bytes}, nil
	}
	rep, found := p.find(name)
	if !found {
		if err := f.call(ctx, rank, "region", regionRequest{Provider: p.bind.name, Name: name}, &rep); err != nil {
			return nil, err
		}
	}
	return f.remote(ctx, p, rep)
}

// ResolveNear finds a region of a rank to which this one has connected without a message ([Fabric.ConnectNear]). It
// returns nil where it would take a message.
func (f *Fabric) ResolveNear(rank int, name string) *Remote {
	p := f.connectedTo(rank)
	if p == nil || p.near == nil {
		return nil
	}
	rep, found := p.find(name)
	if mem := besideBell(p.near, rep.place, rep.Length); found && mem != nil {
		return &Remote{Peer: p, Len: rep.Length, Mem: mem, addr: rep.Addr}
	}
	return nil
}

// remote makes a Remote of the peer's reply about a region.
func (f *Fabric) remote(ctx context.Context, p *Peer, rep regionReply) (*Remote, error) {
	ctx = wait.Context(ctx)
	r := (&Remote{Peer: p, Len: rep.Length, addr: rep.Addr}).bounceWith(rep.Bounce)
	if !f.Mapping() || r.bounce != nil {
		return r, nil
	}
	mem, err := p.mapped(ctx, rep)
	if err == nil {
		r.Mem = mem
	} else if mine := exhausted(f.cfg.Rank, err); mine != nil {
		return nil, mine
	} else if !errors.Is(err, driver.ErrUnsupported) {
		return nil, f.blame(ctx, p.rank, fmt.Errorf("map memory of rank %d: %w", p.rank, err))
	}
	return r, nil
}

// blame returns the error of a rank, if the launcher reports one within lostGrace. A rank
// that ends frees its memory and closes its connections before its peers hear of the end.
// If ctx ends first, blame returns the cause of that, which may be the report itself. Else
// it returns err.
func (f *Fabric) blame(ctx context.Context, rank int, err error) error {
	ctx = wait.Context(ctx)
	grace, cancel := context.WithTimeout(ctx, lostGrace)
	defer cancel()
	_ = f.Wait(grace, func() bool { return f.health.of(rank) != nil || f.closed.Load() })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return f.health.orElse(rank, err)
}
