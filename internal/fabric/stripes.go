package fabric

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Stripes are further connections to a peer. A large transfer uses all of them at once. One
// connection carries a window per round trip at most, and the system bounds the window. So
// far peers get more bytes a second over several connections.
type stripes struct {
	mu    sync.Mutex
	made  chan struct{} // closed once this rank has connected; nil: not begun
	peers []*Peer
	some  atomic.Bool // there are stripes
	// queued are connections of queues. They carry no part of p's transfers, but they end with p.
	queued []*Peer
}

const (
	stripeMin = 4 << 20 // bytes of a striped transfer
	// MaxConnections bounds Config.Connections.
	MaxConnections = 16
)

// stripesFor returns the connections that share a transfer of n bytes, p among them. It
// returns nil if p alone carries the transfer. The first large transfer connects.
func (p *Peer) stripesFor(ctx context.Context, n int) []*Peer {
	if n < stripeMin || p.bind == nil || !p.bind.info.Apart || p.f.cfg.Connections <= 1 {
		return nil
	}
	select {
	case <-p.stripes.begin(p):
	case <-ctx.Done():
		return nil // the transfer itself returns the cause
	}
	more := slices.DeleteFunc(p.stripes.all(), func(s *Peer) bool { return s.Err() != nil })
	if len(more) == 0 {
		return nil
	}
	return append(more, p)
}

// begin starts to make the stripes of p, unless a goroutine has. The attempt goes on when
// the caller's context ends.
func (s *stripes) begin(p *Peer) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil {
		return s.made
	}
	s.made = make(chan struct{})
	if p.f.begin() != nil {
		close(s.made)
		return s.made
	}
	go func() {
		defer p.f.making.Done()
		defer close(s.made)
		p.connectStripes(p.f.ctx)
	}()
	return s.made
}

// connectStripes connects until p has Config.Connections connections, or an attempt fails.
// Fewer connections carry a transfer as well. A stripe counts once a response has come over
// it: one that fails before ends nothing else.
func (p *Peer) connectStripes(ctx context.Context) {
	for i := 1; i < min(p.f.cfg.Connections, MaxConnections); i++ {
		s, err := p.f.connectOver(ctx, p.rank, p.bind, connectRequest{Stripe: i}, true)
		if err != nil {
			return
		}
		p.stripes.enter(s, true)
		if gone := p.fail.Load(); gone != nil {
			s.lose(gone) // set before the stripe was in the list
		}
	}
}

// enter adds a connection: a stripe, or else one of a queue.
func (s *stripes) enter(p *Peer, stripe bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !stripe {
		s.queued = append(s.queued, p)
		return
	}
	s.peers = append(s.peers, p)
	s.some.Store(true)
}

// leave takes out the connection of a queue.
func (s *stripes) leave(p *Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued = slices.DeleteFunc(s.queued, func(q *Peer) bool { return q == p })
}

// further returns all connections that end with the peer's first one.
func (s *stripes) further() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.peers, s.queued)
}

// ofQueues returns the connections of queues.
func (s *stripes) ofQueues() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queued)
}

// late returns the stripes with posts that may not be applied yet.
func (s *stripes) late() []*Peer {
	if !s.some.Load() {
		return nil
	}
	return slices.DeleteFunc(s.all(), func(p *Peer) bool { return p.Err() != nil || p.flushed.Load() >= p.posts() })
}

// all returns the stripes that there are.
func (s *stripes) all() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.peers)
}

// striped reports over which connections p's bytes may go, before its flag. Only a put
// that waits for its source in the caller's memory is striped.
func (r *Remote) striped(ctx context.Context, p *Put) []*Peer {
	body := &p.Body
	if p.Lent || p.Region != nil || p.Landing != (Address{}) || len(p.Head.Mem) > 0 || body.Path != Auto && body.Path != Bulk ||
		ctx.Err() != nil || r.Peer.f.hasty(ctx) {
		return nil
	}
	return r.Peer.stripesFor(ctx, len(body.Mem))
}

// writeStriped carries out p: it writes the body, waits until the peer has applied it, and
// then posts the flag.
func (r *Remote) writeStriped(ctx context.Context, p *Put, over []*Peer) error {
	t := r.transfer(over, p.Body.At, p.Body.Mem)
	t.start = func(ctx context.Context, r *Remote, at int, mem []byte) (Request, error) {
		return r.post(ctx, &Put{Body: Part{At: at, Mem: mem, Path: Bulk}, Lent: true})
	}
	if err := t.run(ctx); err != nil || p.Tell == TellNothing {
		return err
	}
	_, err := r.post(ctx, &Put{Tell: p.Tell, Flag: p.Flag})
	return err
}

// readStriped carries out Read.
func (r *Remote) readStriped(ctx context.Context, offset int, dst []byte, over []*Peer) error {
	t := r.transfer(over, offset, dst)
	t.start = func(ctx context.Context, r *Remote, at int, mem []byte) (Request, error) {
		return r.StartRead(ctx, at, mem)
	}
	return t.run(ctx)
}

// dropStripes ends the further connections of a peer whose first one ends.
func (p *Peer) dropStripes() (errs []error) {
	for _, s := range p.stripes.further() {
		errs = append(errs, s.drop())
	}
	return errs
}

// leadsTo reports whether p or one of its further connections is queue pair qp of b.
func (p *Peer) leadsTo(b *binding, qp uint32) bool {
	is := func(p *Peer) bool { return p.bind == b && p.qp.Load() != nil && p.qp.Load().Num() == qp }
	return is(p) || p.bind == b && slices.ContainsFunc(p.stripes.further(), is)
}
