package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
)

// Listed returns the length of a region in a peer's list.
func Listed(ctx context.Context, f *Fabric, rank int, name string) (length int, ok bool) {
	p, err := f.Peer(ctx, rank)
	if err != nil {
		return 0, false
	}
	rep, ok := p.listed(name)
	return rep.Length, ok
}

// Ops returns the number of operations that p's binding has made, under way or free.
func Ops(p *Peer) int {
	t := &p.bind.ops
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// Closing is closed once f ends its own calls.
func Closing(f *Fabric) <-chan struct{} { return f.ctx.Done() }

// Stuck returns how many closed regions a stopped peer may still change.
func Stuck(f *Fabric) int {
	f.regions.mu.Lock()
	defer f.regions.mu.Unlock()
	return len(f.regions.stuck)
}

// Known reports whether f has a region of a name.
func Known(f *Fabric, name string) bool { return f.regions.find(name) != nil }

// HoldPolling polls, as a goroutine that makes progress does, until release is called.
func HoldPolling(f *Fabric) (release func()) {
	f.polling.Lock()
	return f.polling.Unlock
}

// OpenStage makes a stage at a region for the connection of a peer.
func OpenStage(ctx context.Context, r *Region, rank int) error {
	_, err := r.bounces.open(ctx, r.f.bindings[0], r.name, inboundKey{rank, 0})
	return err
}

// DropStages ends the stages of rank 1's connection to the rank of a region.
func DropStages(r *Region) error {
	r.f.regions.dropStages(inboundKey{1, 0})
	return nil
}

// SpoilListed has the list of f show another key, or another place beside the bell, for a region.
func SpoilListed(f *Fabric, name string, key bool, place uint64) {
	f.regions.mu.Lock()
	defer f.regions.mu.Unlock()
	l, r := &f.regions.list, f.regions.byName[name]
	l.remove(r)
	l.add(r)
	at := l.at[r] * entrySize
	if key {
		atomics.Word64(l.mem[at+8*entryKeyHi:]).Add(1)
	}
	if place != 0 {
		atomics.Word64(l.mem[at+8*entryPlace:]).Store(place)
	}
}
