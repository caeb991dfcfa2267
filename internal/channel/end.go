package channel

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A Config describes one endpoint of the two channels between this rank and a peer.
type Config struct {
	Memory []byte // Size(Ring) bytes of this rank, which the peer alone writes
	Ring   int    // bytes of the rings of one direction, the same at both ends
	Lands  bool   // the peer may write to landings of this rank, and this rank to the peer's
	// Await returns nil once ready is true, or earlier with a reason.
	Await func(ctx context.Context, ready func() bool) error
	// Shortage returns the reason for which this rank's device refused a write for lack of memory, nil
	// if it refused none. It is nil if all of Memory occupies memory.
	Shortage func() error
	// Reach returns the peer's memory of the other endpoint. It waits until the peer has it.
	Reach func(ctx context.Context) (*fabric.Remote, error)
	// NewLanding makes a landing of this rank.
	NewLanding func(ctx context.Context) (fabric.Landing, error)
}

// An End is one endpoint of the two channels between this rank and a peer. One goroutine at
// a time uses it.
type End struct {
	Config
	rings [rings]ring    // in this rank's memory and in the peer's
	there *fabric.Remote // the peer's memory, nil until this rank writes there
	out   outgoing
	in    incoming
	wait  struct { // the word for which this rank waits
		word  *atomic.Uint64
		want  uint64
		key   Key
		ready func() bool
	}
}

// New returns an endpoint. It does not wait for the peer.
func New(c Config) *End {
	e := &End{Config: c, rings: ringsOf(c.Ring)}
	e.wait.ready = func() bool {
		return e.wait.word.Load() >= e.wait.want || e.in.anotherCall(e) || e.short() != nil
	}
	return e
}

// short returns the shortage, nil if there is none.
func (e *End) short() error {
	if e.Shortage == nil {
		return nil
	}
	return e.Shortage()
}

// Close closes the landing. Precondition: the peer writes there no more.
func (e *End) Close() error {
	if e.in.place == nil {
		return nil
	}
	return e.in.place.Close()
}

// reach waits until the peer's memory exists.
func (e *End) reach(ctx context.Context) error {
	if e.there != nil {
		return nil
	}
	there, err := e.Reach(ctx)
	if err != nil {
		return err
	}
	if there.Len < Size(e.Ring) {
		return fmt.Errorf("endpoint of %d bytes, not of %d: %w", there.Len, Size(e.Ring), ErrCorrupt)
	}
	e.there = there
	return nil
}

// await waits until a word that the peer writes is want or more. A message of another call
// ends the wait with a Differs: the peer then never writes the word. So does a shortage.
func (e *End) await(ctx context.Context, m *Message, mem []byte, want uint64) error {
	w := &e.wait
	w.word, w.want, w.key = atomics.Word64(mem), want, m.Key
	if w.word.Load() >= want {
		return nil
	}
	if err := e.Await(ctx, w.ready); err != nil {
		return err
	}
	if w.word.Load() >= want { // the peer wrote it before the message of another call
		return nil
	}
	if err := e.short(); err != nil {
		return err
	}
	return &Differs{Seq: keyIn(e.in.slot(e)).Seq}
}
