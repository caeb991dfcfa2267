package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A posting turns a Put into work requests. It posts together, in one op, what stands
// behind one another in the put:
//
//	Head   Body   flag
//	 W      W     W      three requests at most, one call of PostSend
//
// An op has room for one source that is not inline, since one of its requests at most
// tells the fabric of its completion. What does not fit goes to a second op behind it.
type posting struct {
	*Remote
	put  Put
	o    *op     // the requests that are not posted yet, nil: none
	n    int     // how many they are
	held Request // posted, from memory of the caller's
}

// A manner is how the bytes of one request get to the device.
type manner uint8

const (
	inline manner = iota // the post copies them
	staged               // from a copy of ours, until the peer has it
	lent                 // from the caller's memory, until the peer has them
	stays                // from a Region
)

// walk posts all of the put. After an error nothing is left in w.o.
func (w *posting) walk(ctx context.Context) error {
	p := &w.put
	flagged := p.Tell != TellNothing
	if p.Tell == TellByLastWord {
		if flagged = mutant.FlagBeforeData || !w.Peer.bind.wholeWrite(len(p.Body.Mem)); flagged {
			p.Body.Mem, p.Flag = p.lastWord()
		} else {
			p.Body.Path = Inline
		}
	}
	if mutant.FlagBeforeData && flagged {
		if err := w.flag(ctx, p.Flag); err != nil {
			return err
		}
	}
	if err := w.part(ctx, &p.Head); err != nil {
		return err
	}
	if err := w.part(ctx, &p.Body); err != nil {
		return err
	}
	if !mutant.FlagBeforeData && flagged {
		if err := w.flag(ctx, p.Flag); err != nil {
			return err
		}
	}
	return w.post(ctx)
}

// part adds the requests of one part.
func (w *posting) part(ctx context.Context, part *Part) error {
	to := w.addr
	if w.put.Landing != (Address{}) {
		to = w.put.Landing
	}
	to = to.Add(uint64(part.At))
	for mem := part.Mem; len(mem) > 0; {
		n := min(len(mem), w.MaxMessage())
		if err := w.data(ctx, part.Path, to, mem[:n:n], n == len(mem)); err != nil {
			return err
		}
		to, mem = to.Add(uint64(n)), mem[n:]
	}
	return nil
}

// data adds a write of mem. The last piece of a part whose word may be posted behind it
// is announced: it arrives even if the caller gives up.
func (w *posting) data(ctx context.Context, path Path, to driver.RemoteAddr, mem []byte, last bool) error {
	how := w.manner(ctx, path, len(mem))
	if err := w.room(ctx, 1, how != inline && w.o != nil && w.o.tells(w.n)); err != nil {
		return err
	}
	o, i := w.o, w.n
	w.n++
	o.wr[i] = driver.WorkRequest{Op: driver.OpWrite, Local: o.seg[i : i+1], Remote: to}
	wr := &o.wr[i]
	switch how {
	case inline:
		o.seg[i], wr.Flags = driver.Segment{Mem: mem}, driver.Inline
		return nil
	case stays:
		o.seg[i] = driver.Segment{Mem: mem, LKey: w.put.Region.mrs[o.bind].LKey()}
	default:
		if err := o.lend(i, mem, false, how == staged); err != nil {
			o.unfit = err
		}
	}
	wr.ID, wr.Flags = o.id, driver.Signaled
	if last && w.put.Tell != TellNothing && how != stays {
		wr.Flags |= driver.Announced
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
	case w.put.Region != nil:
		return stays
	case path == FMA:
		return staged
	}
	return lent
}

// hurried reports whether the put must not wait for its source, since ctx has ended, and
// the caller wants to know whether the word that tells was posted.
func (w *posting) hurried(ctx context.Context) bool {
	p := &w.put
	return p.Tell != TellNothing && !p.Lent && p.Region == nil && wait.Context(ctx).Err() != nil
}

// giveUp drops the requests that are not posted yet.
func (w *posting) giveUp(ctx context.Context) error {
	w.Peer.bind.ops.give(w.o)
	w.o, w.n = nil, 0
	w.Peer.f.Progress() // stages may come back
	return context.Cause(ctx)
}

// flag adds the requests that set a flag. Without extended atomics, an addition has an op
// of its own: its answer or its result completes the op.
func (w *posting) flag(ctx context.Context, flag Flag) error {
	info := &w.Peer.bind.info
	n := 1
	if flag.Add && info.SilentWrites {
		n = 2
	}
	if err := w.room(ctx, n, flag.Add && !info.ExtendedAtomics); err != nil {
		return err
	}
	w.n += w.o.flag(w.n, w.addr.Add(uint64(flag.Offset)), flag)
	return nil
}

// room makes w.o an op that takes n more requests, and a new one if behind.
func (w *posting) room(ctx context.Context, n int, behind bool) error {
	if w.n > 0 && (behind || w.n+n > len(w.o.wr)) {
		if err := w.post(ctx); err != nil {
			return err
		}
	}
	if w.o == nil {
		w.o = w.Peer.bind.ops.take(w.Remote)
	}
	return nil
}

// post posts the requests of w.o. Of several sources of the caller's, one at a time is
// under way.
func (w *posting) post(ctx context.Context) error {
	o, n, held := w.o, w.n, w.held
	if o == nil {
		return nil
	}
	w.o, w.n = nil, 0
	if o.borrowed && held.o != nil {
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
