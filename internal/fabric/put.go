package fabric

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/mutant"
)

// A Put describes a write to a peer's memory. It names the data and the word behind the
// data that tells the target of it. A goroutine that sees that word by an atomic load sees
// the data.
type Put struct {
	// Start posts Head ahead of Body. It writes no part without bytes.
	Head, Body Part
	Flag       Flag // of TellByFlag
	Tell       Tell
	// Lent lends the parts to the write until Request.Wait. Without it they are the
	// caller's again when Start returns.
	Lent bool
	// Landing, if not zero, takes the parts instead of the Remote's memory.
	Landing Address
	// Region holds both parts, if not nil. The caller leaves them unchanged until it sees
	// that the target has them. Start then waits only for room in the queue.
	Region *Region
	// Blocks, if not nil, gives the places of Body's bytes, here and in the Remote's memory.
	Blocks *Blocks
}

// A Part names bytes of this rank and their destination.
type Part struct {
	At   int // from the beginning of the Remote's memory or of the landing
	Mem  []byte
	Path Path
}

// Tell says which word tells the target that the data is there.
type Tell uint8

const (
	// TellNothing sets no word. The caller may flush.
	TellNothing Tell = iota
	// TellByFlag sets a flag behind the data.
	TellByFlag
	// TellByLastWord has the last word of Body tell. Body holds aligned words. The word may
	// overtake additions, as a flag that is Ahead.
	TellByLastWord
)

// Start posts the requests of p in order, and waits for room in the queue. It returns at
// local completion. If p is Lent, the Request's Wait does instead. The caller has checked the
// bounds. A part longer than MaxMessage leaves in pieces: Start waits for each but the
// last, unless the device copies it.
//
// If ctx ends, an error says that Start did not post the word which tells. An addition may
// be posted all the same. If ctx has already ended, a put that tells still succeeds if
// Start need not wait. Start then copies the parts.
//
// Start stores to mapped memory, unless the path of Body is FMA or Bulk: these two lead
// through the queue. Start ends a put that bounces. A landing is at a peer whose memory is not mapped (Peer.Lands).
func (r *Remote) Start(ctx context.Context, p *Put) (Request, error) {
	if r.Mem != nil && p.Body.Path < FMA {
		r.store(p)
		return Request{}, nil
	}
	if r.bounce != nil {
		return Request{}, r.putBounced(ctx, p)
	}
	if mutant.SignalAheadOfPuts && p.Lent {
		late := Put{Body: Part{At: p.Body.At, Mem: bytes.Clone(p.Body.Mem)}}
		mutant.Later(func() { _, _ = r.post(context.WithoutCancel(ctx), &late) })
		return Request{}, nil
	}
	return r.post(ctx, p)
}

// Put starts a Put that is not Lent, as Start does.
func (r *Remote) Put(ctx context.Context, p *Put) error {
	_, err := r.Start(ctx, p)
	return err
}

// Write stores src at offset. It returns at local completion.
func (r *Remote) Write(ctx context.Context, offset int, src []byte) error {
	return r.Put(ctx, &Put{Body: Part{At: offset, Mem: src}})
}

// PostFlag sets a flag alone.
func (r *Remote) PostFlag(ctx context.Context, flag Flag) error {
	if r.Mem != nil {
		r.StoreFlag(&flag)
		return nil
	}
	o, err := r.newOp(ctx)
	if err != nil {
		return err
	}
	n := o.flag(0, r.with(flag).addr.Add(uint64(flag.Offset)), flag)
	r.Peer.Stats.count(flagSize)
	_, err = o.start(ctx, n)
	return err
}

// store carries out p in mapped memory.
func (r *Remote) store(p *Put) {
	if len(p.Head.Mem) > 0 {
		bulk.Store(r.Mem[p.Head.At:], p.Head.Mem)
	}
	if p.Blocks != nil {
		blocks.Move(r.Mem, &p.Blocks.remote, p.Body.Mem, &p.Blocks.local)
		if p.Tell == TellByFlag {
			r.StoreFlag(&p.Flag)
		}
		return
	}
	switch p.Tell {
	case TellNothing:
		bulk.Store(r.Mem[p.Body.At:], p.Body.Mem)
	case TellByFlag:
		r.storeTold(p.Body.At, p.Body.Mem, &p.Flag)
	case TellByLastWord:
		body, last := p.lastWord()
		r.storeTold(p.Body.At, body, &last)
	}
}

// storeTold stores to mapped memory, and sets the flag that tells of it.
func (r *Remote) storeTold(offset int, mem []byte, flag *Flag) {
	if mutant.FlagBeforeData {
		r.StoreFlag(flag)
		copy(r.Mem[offset:], mem)
		return
	}
	bulk.Store(r.Mem[offset:], mem)
	r.StoreFlag(flag)
}

// lastWord returns p's Body without its last word, and that word as a flag.
func (p *Put) lastWord() ([]byte, Flag) {
	last := len(p.Body.Mem) - flagSize
	return p.Body.Mem[:last], Flag{Offset: p.Body.At + last, Value: binary.NativeEndian.Uint64(p.Body.Mem[last:]), Ahead: true}
}
