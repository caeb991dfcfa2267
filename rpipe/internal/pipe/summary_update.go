package pipe

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A SummaryUpdate adds to a word of the summary at the peer, if this pipe belongs to a
// fan-in. The block that an addition tells of is the reader's by then. So an addition
// waits for nothing and arrives: those that find no room leave as one sum, behind which
// the pipe's last flag is posted.
type SummaryUpdate struct {
	Count
	unit uint64        // 1 in the pipe's field
	owed atomic.Uint64 // additions that are not posted
	Sum  fabric.Composer
}

// A Count is a word of a summary at the peer.
type Count struct {
	To   *fabric.Peer
	Add  func(ctx context.Context, n uint64) error // behind all that was put before; nil: there is no word
	Word *atomic.Uint64                            // the word where a plain addition is Add, else nil
}

// Open connects to a field of the word.
func (u *SummaryUpdate) Open(c Count, field int) {
	u.Count, u.unit, u.Sum.Compose = c, 1<<Field(field), u.AddSum
}

// Tell adds 1, now or as soon as there is room. It returns the peer's error.
func (u *SummaryUpdate) Tell() error {
	if u.Add == nil {
		return nil
	}
	u.Owe()
	if err := u.To.Post(u.To.NoWait(), &u.Sum); !errors.Is(err, fabric.ErrNoRoom) {
		return err
	}
	return nil
}

// Owe counts an addition that a later AddSum posts.
func (u *SummaryUpdate) Owe() {
	if u.Add != nil {
		u.owed.Add(1)
	}
}

// AddSum posts the additions that are not posted. A device with silent writes may take a
// part of a post: AddSum then adds twice, and the reader looks at the pipes of the group.
func (u *SummaryUpdate) AddSum(ctx context.Context) error {
	n := u.owed.Swap(0)
	if n == 0 {
		return nil
	}
	err := u.Add(ctx, n*u.unit)
	if errors.Is(err, fabric.ErrNoRoom) {
		u.owed.Add(n)
	}
	return err
}
