package fabric

import (
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A short holds the work request of puts that need no op: one inline request each, and no word
// tells of it. The device has copied the request when the post returns, so all such puts of a
// peer share it. The mutex of the peer guards it.
type short struct {
	wr    [1]driver.WorkRequest
	seg   [1]driver.Segment
	count shorts
}

// shorts counts short puts as Counters does. Three atomic additions would take a tenth of the
// time of a short put (put_issue of 8 bytes over tcp).
type shorts struct{ ops, bytes, staged uint64 }

// isShort reports whether one inline request to p carries out the put and nothing tells of it.
func (p *Peer) isShort(put *Put) bool {
	body := &put.Body
	n := len(body.Mem)
	return !(mutant.TornPut && n == 8) && put.Tell == TellNothing && put.Blocks == nil && len(put.Head.Mem) == 0 && put.Landing == (Address{}) &&
		n > 0 && n <= min(p.bind.info.MaxInline, maxInline) && body.Path != Bulk && (body.Path != Auto || p.PathOf(n) == FMA)
}

// postShort posts a short put. An op would cost it two locks and the clearing of three
// requests. It returns false, and has posted nothing, if the put has to wait or fails: an op
// then waits, and finds the cause.
func (r *Remote) postShort(part *Part) bool {
	p := r.Peer
	if p.qp.Load() == nil || p.line.waits.Load() || p.requests.Load() != p.responses.Load() || p.fail.Load() != nil {
		return false
	}
	p.mu.Lock()
	posted := p.tryShort(r, part)
	p.mu.Unlock()
	return posted
}

// tryShort is postShort under the mutex of p.
func (p *Peer) tryShort(r *Remote, part *Part) bool {
	if r.origin().retired != nil || p.bind.outstanding.Load() >= p.bind.room {
		return false
	}
	wr, unsignaled := &p.short.wr[0], p.unsignaled
	p.short.seg[0].Mem = part.Mem
	wr.ID, wr.Op, wr.Flags, wr.Local = unsignaledID, driver.OpWrite, driver.Inline, p.short.seg[:]
	wr.Remote = r.addr.Add(uint64(part.At))
	p.sign(wr, unsignaled)
	took, _ := p.qp.Load().PostSend(p.short.wr[:]) // an op meets the error again
	p.short.seg[0].Mem = nil
	if took == 0 {
		return false
	}
	p.account(wr)
	n := uint64(len(part.Mem))
	p.short.count.staged += n
	if r.whole == nil { // else the transfer counted its pieces
		p.short.count.ops++
		p.short.count.bytes += n
	}
	return true
}
