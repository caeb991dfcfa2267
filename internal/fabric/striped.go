package fabric

import "context"

// A transfer cuts bytes into pieces and has several connections carry them. A connection
// that is faster than the others carries more pieces. Order is kept by waiting: a transfer
// starts when all that an Order put ahead of it is applied, and it ends when its pieces
// are. So neither a flag nor a flush behind it needs to know of its connections.
type transfer struct {
	r     *Remote
	over  []*Remote // the same region, over each connection
	start func(ctx context.Context, r *Remote, at int, mem []byte) (Request, error)
	at    int
	mem   []byte // not started yet
	piece int
	under [][]Request // way, by connection, oldest first
}

// These are the bounds of pieces. A connection needs more of them under way than its window
// holds.
const (
	pieceMin  = 512 << 10
	pieceMost = 8 << 20
	piecesOf  = 8 // under way on one connection, at most
)

// transfer prepares a transfer of mem in pieces over the connections of several peers, all to one rank.
func (r *Remote) transfer(over []*Peer, at int, mem []byte) *transfer {
	t := &transfer{r: r, at: at, mem: mem, under: make([][]Request, len(over))}
	t.piece = min(max(len(mem)/(4*len(over)), pieceMin), pieceMost)
	for _, p := range over {
		t.over = append(t.over, &Remote{Peer: p, Len: r.Len, addr: r.addr, whole: r})
	}
	r.Peer.Stats.count(len(mem))
	return t
}

// run returns when all pieces have arrived. After an error it returns once no provider uses
// the memory any more.
func (t *transfer) run(ctx context.Context) error {
	err := t.r.Peer.awaitOrdered(ctx)
	for err == nil && t.feed(ctx, &err) {
		if err = t.r.Peer.f.Wait(ctx, t.moved); err == nil {
			err = t.reap(ctx)
		}
	}
	for _, requests := range t.under {
		for _, req := range requests {
			if e := req.Wait(ctx); err == nil {
				err = e
			}
		}
	}
	return err
}

// feed starts pieces on every connection that has room. It reports whether pieces are under
// way.
func (t *transfer) feed(ctx context.Context, err *error) (busy bool) {
	for i := range t.over {
		for len(t.mem) > 0 && len(t.under[i]) < piecesOf {
			n := min(t.piece, len(t.mem))
			var req Request
			if req, *err = t.start(ctx, t.over[i], t.at, t.mem[:n]); *err != nil {
				return false
			}
			t.under[i] = append(t.under[i], req)
			t.at, t.mem = t.at+n, t.mem[n:]
		}
		busy = busy || len(t.under[i]) > 0
	}
	return busy
}

// moved reports whether the oldest piece of a connection has ended.
func (t *transfer) moved() bool {
	for _, requests := range t.under {
		if len(requests) > 0 && (requests[0].o == nil || requests[0].o.over()) {
			return true
		}
	}
	return false
}

// reap takes the pieces that have ended off their connections.
func (t *transfer) reap(ctx context.Context) error {
	for i := range t.under {
		for len(t.under[i]) > 0 && (t.under[i][0].o == nil || t.under[i][0].o.over()) {
			req := t.under[i][0]
			t.under[i] = t.under[i][1:]
			if err := req.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitOrdered waits until all posts ahead of the latest Order are applied.
func (p *Peer) awaitOrdered(ctx context.Context) error {
	if p.orderPosted.Load() <= p.flushed.Load() && p.orderAt.Load() <= p.responses.Load() && !p.line.waits.Load() {
		return nil
	}
	begun := p.acknowledge(ctx)
	return begun.end(ctx)
}
