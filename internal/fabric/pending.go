package fabric

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Composer posts bytes that may not wait for room in the queue and must arrive. Its
// owner puts it into the peer's line. The peer calls Compose once there is room. Compose
// then makes up its put, of all that the owner has for the peer.
//
//	Later -> | 3rd | 2nd | 1st | -> Compose -> posted: the composer leaves the line
//	                                           ErrNoRoom: it stays the first
//
// Goroutines pump a line one at a time. Such a goroutine polled a completion, is in Post or Await,
// or waits with a put behind the line. The fabric's timer pumps, too, and so does the end of the
// fabric. A put that starts while composers are in line waits until the line is empty, and so never
// overtakes one.
//
// Invariant: a goroutine that holds a mutex which Compose takes posts under [Peer.NoWait]
// only, and neither waits nor makes progress.
//
// So no deadlock is possible. The fabric holds no lock as it calls Compose. Under the
// context of Compose a put neither waits nor polls. So the goroutine in Compose waits for
// a mutex at most, whose holder waits for nothing. A line moves as soon as there is room.
// Completions make room without help of the programs of the two ranks.
type Composer struct {
	// Compose posts under ctx. If it returns ErrNoRoom, something is left to post, and the
	// peer calls Compose again. After any other result the composer has left the line.
	Compose func(ctx context.Context) error

	// Guarded by the fabric's pending.
	peer  *Peer
	next  *Composer
	state composerState
	err   error // of the last Compose that did not return ErrNoRoom
}

// ErrNoRoom says that a put may not wait and found no room, or composers in line.
var ErrNoRoom = errors.New("no room in the queue to the peer")

// A composerState says how far a composer has come. It changes under the mutex of the peer's line.
type composerState uint8

const (
	idle      composerState = iota // not in line
	inLine                         // Compose will be called
	composing                      // Compose is being called
	recompose                      // Compose is being called, and will be once more
)

// retryAfter is the time between two ticks of the timer. Without the timer a line would
// stand still while no goroutine polls. It would also do so while a device refuses
// requests and none is in progress.
const retryAfter = time.Millisecond

// pending holds the lines of a fabric that are not empty.
type pending struct {
	noWait, turn context.Context // the contexts of NoWait and of Compose; both have ended

	some    atomic.Int32 // number of peers
	mu      sync.Mutex   // held for moments
	peers   []*Peer
	timer   *time.Timer
	running bool // the timer is set, or its tick is not over
}

// A line holds the composers of one peer, in order. The fabric's pending guards all but waits.
type line struct {
	first, last *Composer
	pumping     bool        // a goroutine calls Compose
	waits       atomic.Bool // the line is not empty
}

// init makes the two contexts, which have ended from the start.
func (g *pending) init() {
	for _, ctx := range []*context.Context{&g.noWait, &g.turn} {
		ended, cancel := context.WithCancelCause(context.Background())
		cancel(ErrNoRoom)
		*ctx = ended
	}
}

// NoWait returns a context under which a put waits for nothing, makes no progress and
// calls no composer. It fails with ErrNoRoom if there is no room, or composers are in line.
func (p *Peer) NoWait() context.Context { return p.f.pending.noWait }

// hasty reports whether a put under ctx waits for nothing and makes no progress.
func (f *Fabric) hasty(ctx context.Context) bool {
	return ctx == f.pending.noWait || ctx == f.pending.turn
}

// Post calls c.Compose at once if the line is empty. If there is no room, it puts c into the
// line. It waits until c is posted, and returns the error of Compose. If ctx ends first,
// Post returns the cause of its end, and c stays in line. Under NoWait that is at once. The
// caller holds no mutex that any Compose takes: Post may call the composers in line.
func (p *Peer) Post(ctx context.Context, c *Composer) error {
	if !p.line.waits.Load() {
		if err := c.Compose(p.NoWait()); !errors.Is(err, ErrNoRoom) {
			return err
		}
	}
	p.Later(c)
	return p.Await(ctx, c)
}

// Later puts c into the line of p. A call of Compose follows that sees all that the caller
// did before. If c is in line already, Later does nothing. The caller may hold mutexes
// that Compose takes.
func (p *Peer) Later(c *Composer) {
	g := &p.f.pending
	g.mu.Lock()
	defer g.mu.Unlock()
	switch c.state {
	case idle:
		c.peer = p
		g.append(c)
	case composing:
		c.state = recompose
	}
}

// Await waits until c has left the line, and returns the error of Compose. If ctx ends
// first, Await returns the cause of its end. The caller holds no mutex that any Compose
// takes: Await calls the composers in line.
func (p *Peer) Await(ctx context.Context, c *Composer) error {
	var result error
	err := p.f.Wait(ctx, func() bool {
		p.pump()
		g := &p.f.pending
		g.mu.Lock()
		defer g.mu.Unlock()
		result = c.err
		return c.state == idle
	})
	if err != nil {
		return err
	}
	return result
}

// append puts c at the end of its peer's line. The caller holds mu.
func (g *pending) append(c *Composer) {
	p := c.peer
	c.state = inLine
	if p.line.first != nil {
		p.line.last.next, p.line.last = c, c
		return
	}
	p.line.first, p.line.last = c, c
	p.line.waits.Store(true)
	g.peers = append(g.peers, p)
	g.some.Store(int32(len(g.peers)))
	switch {
	case g.running:
	case g.timer == nil:
		g.timer = time.AfterFunc(retryAfter, p.f.retry)
	default:
		g.timer.Reset(retryAfter)
	}
	g.running = true
}

// remove takes the first composer out of p's line. The caller holds mu.
func (g *pending) remove(p *Peer, err error) {
	c := p.line.first
	again := c.state == recompose
	p.line.first, c.next, c.state, c.err = c.next, nil, idle, err
	if p.line.first == nil {
		p.line.last = nil
		p.line.waits.Store(false)
		for i := range g.peers {
			if last := len(g.peers) - 1; g.peers[i] == p {
				g.peers[i], g.peers[last] = g.peers[last], nil
				g.peers = g.peers[:last]
				break
			}
		}
		g.some.Store(int32(len(g.peers)))
	}
	if again {
		g.append(c)
	}
}

// pump calls the composers of p's line, in order, until one finds no room. It reports
// whether the line is empty. Of several goroutines one pumps, and the others return.
func (p *Peer) pump() (empty bool) {
	if !p.line.waits.Load() {
		return true
	}
	g := &p.f.pending
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.line.pumping {
		return false
	}
	p.line.pumping = true
	for p.line.first != nil && p.compose(g, p.line.first) {
	}
	p.line.pumping = false
	return p.line.first == nil
}

// compose calls the first composer, and reports whether there may be room for more. The
// caller holds g.mu; compose releases it meanwhile. A completion in that time counts here:
// the goroutine that polled it found this one pumping.
func (p *Peer) compose(g *pending, c *Composer) bool {
	before := p.freed()
	c.state = composing
	g.mu.Unlock()
	err := c.Compose(g.turn)
	g.mu.Lock()
	if errors.Is(err, ErrNoRoom) {
		c.state = inLine
		return p.freed() != before
	}
	g.remove(p, err)
	p.f.bell.Ring()
	return true
}

// freed counts the completions and the responses that make room for posts to p.
func (p *Peer) freed() uint64 {
	if p.bind == nil {
		return 0
	}
	return p.bind.completed.Load() + p.responses.Load()
}

// pump calls the composers of all peers.
func (f *Fabric) pump() {
	g := &f.pending
	for i := int(g.some.Load()) - 1; i >= 0; i-- {
		g.mu.Lock()
		var p *Peer
		if i < len(g.peers) {
			p = g.peers[i]
		}
		g.mu.Unlock()
		if p != nil {
			p.pump()
		}
	}
}

// retry is the tick of the timer, which runs while composers are in line.
func (f *Fabric) retry() {
	if f.begin() != nil {
		return
	}
	defer f.making.Done()
	f.Progress()
	f.pump()
	g := &f.pending
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running = len(g.peers) > 0; g.running {
		g.timer.Reset(retryAfter)
	}
}

// giveWay lets the composers of p go first. An operation under ctx calls it while composers
// are in line. It does nothing for the put of a composer.
func (p *Peer) giveWay(ctx context.Context) error {
	g := &p.f.pending
	switch ctx {
	case g.turn:
		return nil
	case g.noWait:
		return ErrNoRoom
	}
	p.Stats.stalls.Add(1)
	return p.f.Wait(ctx, func() bool { return p.pump() || p.fail.Load() != nil })
}
