package fabric

import "context"

// Inbound returns the number of passive ends at this rank.
func (f *Fabric) Inbound() int {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	return len(f.inbound)
}

// PutOverStripes posts a put of b at offset 0 over each stripe, and does not wait.
func (r *Remote) PutOverStripes(ctx context.Context, b []byte) error {
	for _, s := range r.Peer.stripes.all() {
		over := &Remote{Peer: s, Len: r.Len, addr: r.addr, whole: r}
		if _, err := over.post(ctx, &Put{Body: Part{Mem: b}}); err != nil {
			return err
		}
	}
	return nil
}

// LateStripes returns the number of stripes with posts that may not be applied yet.
func (p *Peer) LateStripes() int { return len(p.stripes.late()) }
