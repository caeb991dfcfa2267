package fabric

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
