package fabric

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/verbs/driver"
)

// maxInline bounds what a post copies, whatever the provider would take.
const maxInline = 64 << 10

// defaultFMA is the switch point where none is asked for: copying a write of
// this size into the combining frame costs less than waiting for the
// acknowledgement that sending it from the caller's slice needs.
const defaultFMA = 64 << 10

// A Path is how a queued write travels.
type Path uint8

const (
	// FMA: copied as it is posted, so that its source is free at once.
	FMA Path = iota
	// Bulk: from the caller's memory, which is free once the peer has it.
	Bulk
)

// MaxFMA is the largest write that can be copied as it is posted to p.
func (p *Peer) MaxFMA() int {
	if p.bind.info.LocalKeys {
		return stageSize
	}
	return min(p.bind.info.MaxInline, maxInline)
}

// PathOf returns how a queued write of n bytes to p travels.
func (p *Peer) PathOf(n int) Path {
	limit := p.f.cfg.FMAMax
	if limit <= 0 {
		limit = defaultFMA
	}
	if n <= min(limit, p.MaxFMA()) {
		return FMA
	}
	return Bulk
}

// Write stores src at offset. It returns at local completion: src may be used
// again. The caller has checked the bounds.
func (r *Remote) Write(ctx context.Context, offset int, src []byte) error {
	return r.inPieces(offset, src, func(at int, piece []byte) error {
		req, err := r.StartWrite(ctx, at, piece)
		if err != nil {
			return err
		}
		return req.Wait(ctx)
	})
}

// inPieces has move called for pieces of mem that fit a work request.
func (r *Remote) inPieces(offset int, mem []byte, move func(at int, piece []byte) error) error {
	most := r.MaxMessage()
	for len(mem) > most {
		if err := move(offset, mem[:most]); err != nil {
			return err
		}
		offset, mem = offset+most, mem[most:]
	}
	return move(offset, mem)
}

// MaxMessage is the largest transfer of one request, in bytes.
func (r *Remote) MaxMessage() int {
	return int(min(r.Peer.bind.info.MaxMessage, math.MaxInt64))
}

// StartWrite is Write of at most MaxMessage bytes, without the wait: src
// belongs to the operation until the request's Wait.
func (r *Remote) StartWrite(ctx context.Context, offset int, src []byte) (Request, error) {
	return r.StartWriteBy(ctx, r.Peer.PathOf(len(src)), offset, src)
}

// StartWriteBy is StartWrite by a path of the caller's choice: FMA takes no
// more than MaxFMA bytes. It is there to measure where to switch.
func (r *Remote) StartWriteBy(ctx context.Context, path Path, offset int, src []byte) (Request, error) {
	p := r.Peer
	o := p.bind.ops.take(r)
	o.write(0, path, r.addr.Add(uint64(offset)), src)
	p.Stats.count(len(src))
	return o.start(ctx, 1)
}

// write fills request i with a write of src. By FMA its source is free once it
// is posted: the device copies it, or a stage holds the copy until it has left.
func (o *op) write(i int, path Path, to driver.RemoteAddr, src []byte) {
	o.wr[i] = driver.WorkRequest{Op: driver.OpWrite, Local: o.seg[i : i+1], Remote: to}
	if path == FMA && len(src) <= o.bind.info.MaxInline {
		o.seg[i], o.wr[i].Flags = driver.Segment{Mem: src}, driver.Inline
		return
	}
	o.wr[i].ID, o.wr[i].Flags = o.id, driver.Signaled
	if err := o.lend(i, src, false, path == FMA); err != nil {
		o.unfit = err
	}
	o.alone = !o.borrowed
}

// start posts the first n requests of o. Where none of them will tell of its
// completion, or nobody needs to know, the returned Request is complete.
func (o *op) start(ctx context.Context, n int) (Request, error) {
	posted, err := o.post(ctx, n)
	tells := false
	for i := range o.wr[:posted] {
		tells = tells || o.wr[i].ID == o.id || o.asking
	}
	switch {
	case !tells:
		o.bind.ops.give(o)
	case err != nil:
		o.withdraw() // what was posted must not outlive the call
	case o.alone:
		o.leave()
	default:
		return Request{o, o.uses.Load()}, nil
	}
	return Request{}, err
}

// ReadWord fetches the word of 8 bytes at offset, a multiple of 8, by an atomic
// that adds nothing, which some devices do sooner than a READ. It is the device's
// own atomic: nobody else may access the word meanwhile.
func (r *Remote) ReadWord(ctx context.Context, offset int) (uint64, error) {
	o := r.Peer.bind.ops.take(r)
	o.wr[0] = driver.WorkRequest{Op: driver.OpFetchAdd, Remote: r.addr.Add(uint64(offset))}
	r.Peer.Stats.count(8)
	return o.fetch(ctx, 8)
}

// Read fetches len(dst) bytes from offset. dst is filled when it returns nil
// and nobody's but the caller's when it returns at all.
func (r *Remote) Read(ctx context.Context, offset int, dst []byte) error {
	return r.inPieces(offset, dst, func(at int, piece []byte) error {
		req, err := r.StartRead(ctx, at, piece)
		if err != nil {
			return err
		}
		return req.Wait(ctx)
	})
}

// StartRead is Read of at most MaxMessage bytes, without the wait: dst belongs
// to the operation until Wait.
func (r *Remote) StartRead(ctx context.Context, offset int, dst []byte) (Request, error) {
	p := r.Peer
	o := p.bind.ops.take(r)
	if err := o.lend(0, dst, true, false); err != nil {
		o.unfit = err
	}
	o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpRead, Flags: driver.Signaled, Local: o.seg[:1],
		Remote: r.addr.Add(uint64(offset))}
	p.Stats.count(len(dst))
	return o.start(ctx, 1)
}
