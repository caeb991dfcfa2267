package fabric

import "context"

// WithoutRetry has no timer call composers, before there are any.
func WithoutRetry(f *Fabric) {
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	f.pending.running = true
}

// Retries reports whether the timer that calls composers runs.
func Retries(f *Fabric) bool {
	f.pending.mu.Lock()
	defer f.pending.mu.Unlock()
	return f.pending.running
}

// Stalls counts the waits of posts to p.
func (p *Peer) Stalls() uint64 { return p.Stats.stalls.Load() }

// FlushAwaits flushes p, and returns how many responses of the target's CPU the flush awaited.
func (p *Peer) FlushAwaits(ctx context.Context) (uint64, error) {
	begun := p.beginFlush(ctx)
	return begun.requests, begun.end(ctx)
}

// AwaitOrdered waits as a striped transfer does, until all posts ahead of the latest Order are applied.
func (p *Peer) AwaitOrdered(ctx context.Context) error { return p.awaitOrdered(ctx) }
