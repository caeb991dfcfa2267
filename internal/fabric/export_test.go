package fabric

import "context"

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

// Stuck returns how many closed regions a stopped peer may still change.
func Stuck(f *Fabric) int {
	f.regions.mu.Lock()
	defer f.regions.mu.Unlock()
	return len(f.regions.stuck)
}
