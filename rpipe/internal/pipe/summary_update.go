package pipe

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A SummaryUpdate stores numbers in a word of the summary at the peer, if this pipe belongs to
// a fan-in. The block that a number tells of is the reader's by then. So a store waits for
// nothing and arrives: of those that find no room the last one leaves. The step between
// numbers is random: a word that a peer damages does not hide the next number.
type SummaryUpdate struct {
	Word     *atomic.Uint64                                // where a plain store is Set, else nil
	Set      func(ctx context.Context, value uint64) error // behind all that was put before; nil: there is no word
	To       *fabric.Peer
	number   atomic.Uint64 // the last one
	Step     uint64        // to the next one
	Composer fabric.Composer
}

// Open connects to a word of a summary.
func (u *SummaryUpdate) Open(r *fabric.Remote, place int) {
	if r.Mem != nil {
		u.Word = atomics.Word64(r.Mem[WordSize*place:])
	}
	u.To, u.Composer.Compose, u.Step = r.Peer, u.Repeat, rand.Uint64()|1
	u.Set = func(ctx context.Context, value uint64) error {
		return r.PostFlag(ctx, fabric.Flag{Offset: WordSize * place, Value: value, Ahead: true})
	}
}

// Tell stores the next number, now or as soon as there is room. It returns the peer's error.
func (u *SummaryUpdate) Tell() error {
	if u.Set == nil {
		return nil
	}
	u.next()
	return postOrLater(u.To, &u.Composer)
}

// TellMapped is Tell for a word in mapped memory. Behind it the caller looks for goroutines that
// wait: the last store orders that behind the first one.
func (u *SummaryUpdate) TellMapped() {
	n := u.number.Load() + u.Step
	atomics.StoreRelease(u.Word, n)
	u.number.Store(n)
}

// next moves to the next number.
func (u *SummaryUpdate) next() { u.number.Add(u.Step) }

// Repeat stores the last number.
func (u *SummaryUpdate) Repeat(ctx context.Context) error { return u.Set(ctx, u.number.Load()) }
