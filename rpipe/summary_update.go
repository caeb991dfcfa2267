package rpipe

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
)

// A summaryUpdate adds to a word of the summary at the peer, if this pipe belongs to a
// fan-in. The block that an addition tells of is the reader's by then. So an addition
// waits for nothing and arrives: those that find no room leave as one sum, behind which
// the pipe's last flag is posted.
type summaryUpdate struct {
	add  func(ctx context.Context, n uint64) error // nil: there is no word
	to   *fabric.Peer
	owed atomic.Uint64 // additions that are not posted
	sum  fabric.Composer
}

func (u *summaryUpdate) open(to *fabric.Peer, add func(ctx context.Context, n uint64) error) {
	u.to, u.add, u.sum.Compose = to, add, u.addSum
}

// tell adds 1, now or as soon as there is room. It returns what became of the peer.
func (u *summaryUpdate) tell() error {
	if u.add == nil {
		return nil
	}
	u.owe()
	if err := u.to.Post(u.to.NoWait(), &u.sum); !errors.Is(err, fabric.ErrNoRoom) {
		return err
	}
	return nil
}

// owe counts an addition that a later addSum posts.
func (u *summaryUpdate) owe() {
	if u.add != nil {
		u.owed.Add(1)
	}
}

// addSum posts the additions that are not posted. A device with silent writes may take a
// part of a post: addSum then adds twice, and the reader looks at the pipes of the group.
func (u *summaryUpdate) addSum(ctx context.Context) error {
	n := u.owed.Swap(0)
	if n == 0 {
		return nil
	}
	err := u.add(ctx, n)
	if errors.Is(err, fabric.ErrNoRoom) {
		u.owed.Add(n)
	}
	return err
}
