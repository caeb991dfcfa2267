package fabric

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A posting turns a Put into work requests. It posts the requests of successive parts
// together, in one op:
//
//	Head   Body   flag
//	 W      W     W      three requests at most, one call of PostSend
//
// An op has room for one source that is not inline. At most one of its requests tells the
// fabric of its completion. Further requests go to a second op behind it.
type posting struct {
	*Remote
	base   Address // the destination of the parts
	region *Region // their memory, or nil
	tells  bool    // a word tells the target that they are there
	lent   bool    // until Request.Wait
	o      *op     // the requests that are not posted yet, nil: none
	n      int     // how many they are
	held   Request // posted from the caller's memory
}

// A manner says how the bytes of one request get to the device.
type manner uint8

const (
	inline manner = iota // the post copies them
	staged               // from a stage, until the peer has the copy
	direct               // from the caller's memory, until the peer has them
	stays                // from a Region
)

// post starts a put as Start does, but always through the queue.
func (r *Remote) post(ctx context.Context, p *Put) (Request, error) {
	if len(p.Body.Mem) >= stripeMin && p.Blocks == nil {
		if over := r.striped(wait.Context(ctx), p); over != nil {
			return Request{}, r.writeStriped(ctx, p, over)
		}
	}
	if r.Peer.isShort(p) && r.postShort(&p.Body) {
		return Request{}, nil
	}
	w := posting{Remote: r, base: r.addr, region: p.Region, tells: p.Tell != TellNothing, lent: p.Lent}
	if p.Landing != (Address{}) {
		w.base = p.Landing
	}
	err := w.walk(ctx, p)
	switch {
	case w.held.o == nil || err == nil && p.Lent:
		return w.held, err
	case err != nil:
		return Request{}, errors.Join(w.held.Wait(ctx), err)
	case w.tells:
		return Request{}, w.held.handOver(ctx)
	}
	return Request{}, w.held.Wait(ctx)
}

// walk posts all of p. After an error w.o is nil.
func (w *posting) walk(ctx context.Context, p *Put) error {
	path, mem, flag, flagged := p.Body.Path, p.Body.Mem, p.Flag, w.tells
	if p.Tell == TellByLastWord {
		if flagged = mutant.FlagBeforeData || !w.Peer.bind.wholeWrite(len(mem)); flagged {
			mem, flag = p.lastWord()
		} else {
			path = Inline
		}
	}
	bytes := len(p.Head.Mem) + len(mem)
	if p.Blocks != nil {
		bytes = len(p.Head.Mem) + p.Blocks.size
	}
	if flagged {
		bytes += flagSize
	}
	if w.whole == nil { // the transfer counted its pieces
		w.Peer.Stats.count(bytes)
	}
	if mutant.FlagBeforeData && flagged {
		if err := w.flag(ctx, flag); err != nil {
			return err
		}
	}
	if len(p.Head.Mem) > 0 {
		if err := w.part(ctx, p.Head.Path, p.Head.At, p.Head.Mem); err != nil {
			return err
		}
	}
	if err := w.body(ctx, path, p, mem); err != nil {
		return err
	}
	if !mutant.FlagBeforeData && flagged {
		if err := w.flag(ctx, flag); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// body adds the requests of p's Body, whose bytes are mem.
func (w *posting) body(ctx context.Context, path Path, p *Put, mem []byte) error {
	if p.Blocks != nil {
		return w.blocks(ctx, path, mem, p.Blocks)
	}
	return w.part(ctx, path, p.Body.At, mem)
}

// part adds the requests of one part, one for each piece that a request takes.
func (w *posting) part(ctx context.Context, path Path, at int, mem []byte) error {
	most := w.MaxMessage()
	if mutant.TornPut && len(mem) == 8 {
		most = 4
	}
	for len(mem) > 0 {
		piece := mem[:min(len(mem), most)]
		how := w.manner(ctx, path, len(piece))
		if err := w.room(ctx, 1, how != inline && w.n > 0 && w.o.tells(w.n)); err != nil {
			return err
		}
		o, i := w.o, w.n
		w.n++
		o.wr[i].Op, o.wr[i].Local, o.wr[i].Remote = driver.OpWrite, o.seg[i:i+1], w.base.Add(uint64(at))
		at, mem = at+len(piece), mem[len(piece):]
		if how == inline {
			o.seg[i], o.wr[i].Flags = driver.Segment{Mem: piece}, driver.Inline
			w.Peer.Stats.staged.Add(uint64(len(piece)))
		} else if err := w.source(ctx, i, how, piece, len(mem) == 0); err != nil {
			return err
		}
		if mutant.TornPut && most == 4 {
			if err := w.flush(ctx); err != nil {
				return err
			}
			mutant.Pause()
		}
	}
	return nil
}

// source has request i send mem from its place, or from a stage. If a word tells of the
// part, source announces the last piece. That piece arrives even if the caller gives up,
// since the word may be posted.
func (w *posting) source(ctx context.Context, i int, how manner, mem []byte, last bool) error {
	o := w.o
	o.wr[i].ID, o.wr[i].Flags = o.id, driver.Signaled
	if how == stays {
		o.seg[i], o.alone = driver.Segment{Mem: mem, LKey: w.region.mrs[o.bind].LKey()}, true
		return nil
	}
	if last && w.tells {
		o.wr[i].Flags |= driver.Announced
	}
	if err := o.lend(i, mem, false, how == staged); err != nil {
		o.unfit = err
	}
	o.alone = !o.borrowed
	if o.borrowed && w.hurried(ctx) {
		return w.giveUp(ctx)
	}
	return nil
}

// manner decides how n bytes leave.
func (w *posting) manner(ctx context.Context, path Path, n int) manner {
	b := w.Peer.bind
	if path == Inline && n <= b.inlineMax() {
		return inline
	}
	if path < FMA {
		path = w.Peer.PathOf(n)
	}
	if path == Bulk && n <= stageSize && w.hurried(ctx) {
		path = FMA // by way of a stage, where the device copies less
	}
	switch {
	case path == FMA && n <= min(b.info.MaxInline, maxInline):
		return inline
	case w.region != nil:
		return stays
	case path == FMA:
		return staged
	}
	return direct
}

// hurried reports whether the put must not wait for its source. That is so if ctx has
// ended, and the caller wants to know whether the word that tells was posted.
func (w *posting) hurried(ctx context.Context) bool {
	return w.tells && !w.lent && w.region == nil && wait.Context(ctx).Err() != nil
}

// giveUp drops the requests that are not posted yet.
func (w *posting) giveUp(ctx context.Context) error {
	w.Peer.bind.ops.give(w.o)
	w.o, w.n = nil, 0
	if !w.Peer.f.hasty(ctx) {
		w.Peer.f.Progress() // stages may come back
	}
	return context.Cause(ctx)
}

// flag adds the requests that set a flag. Without extended atomics, an addition has an op
// of its own: its response or its result completes the op.
func (w *posting) flag(ctx context.Context, flag Flag) error {
	info := &w.Peer.bind.info
	n := 1
	if flag.Add && info.Writes.Silent {
		n = 2
	}
	if err := w.room(ctx, n, flag.Add && !info.Atomics.Extended); err != nil {
		return err
	}
	w.n += w.o.flag(w.n, w.with(flag).addr.Add(uint64(flag.Offset)), flag)
	return nil
}

// room makes w.o an op that takes n more requests. With behind, these go to an op of their own.
func (w *posting) room(ctx context.Context, n int, behind bool) error {
	if w.n > 0 && (behind || w.n+n > len(w.o.wr)) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	if w.o == nil {
		o, err := w.newOp(ctx)
		w.o = o
		return err
	}
	return nil
}

// flush posts the requests of w.o. At most one source in the caller's memory is under way
// at a time.
func (w *posting) flush(ctx context.Context) error {
	o, n := w.o, w.n
	if o == nil {
		return nil
	}
	w.o, w.n = nil, 0
	if o.borrowed && w.held.o != nil {
		held := w.held
		w.held = Request{}
		if err := held.Wait(ctx); err != nil {
			o.bind.ops.give(o)
			return err
		}
	}
	req, err := o.start(ctx, n)
	if req.o != nil {
		w.held = req
	}
	return err
}
