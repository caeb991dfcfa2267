package fabric

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
)

// A rank leaves when its program makes no more calls. Its memory stays reachable until the
// job closes, but calls of peers that need a call of its program would wait in vain. It tells
// the peers which of its regions it has abandoned:
//
//	this rank                          peer
//	its program returns                waits for a block of a pipe, a region, or a value
//	flush
//	left: names of regions    ------>  looks once more; the call ends with ErrLeft
//
// Puts of this rank that a call waits for have arrived by then. A peer that needs no region, but any
// call of the program, sends the rank a request: by [Fabric.Left] if it may not wait, or by [Fabric.AwaitLeft].

// An Abandoner is an attachment with regions that peers use, and for which this rank makes no
// more calls once it leaves.
type Abandoner interface {
	// Abandoned returns the names of these regions by the world rank of the peer.
	Abandoned() map[int][]string
}

// leftMessage names regions that a rank has abandoned, by the service "left".
type leftMessage struct{ Names []string }

// Leave waits for the remote completion of this rank's puts. It then tells peers which regions
// this rank has abandoned, and which ones it never registers, and waits until they have the
// message.
func (f *Fabric) Leave(ctx context.Context) {
	if err := f.FlushAll(ctx); err != nil && wait.Context(ctx).Err() != nil {
		return // puts are under way; calls of a peer that cannot be reached fail anyway
	}
	names := f.regions.leave()
	for _, a := range f.attached.abandoners() {
		for rank, of := range a.Abandoned() {
			names[rank] = append(names[rank], of...)
		}
	}
	delete(names, f.cfg.Rank)
	if len(names) == 0 || f.begin() != nil {
		return
	}
	defer f.making.Done()
	var told sync.WaitGroup
	for rank, of := range names {
		told.Go(func() { _ = f.call(ctx, rank, "left", leftMessage{of}, &struct{}{}) })
	}
	told.Wait() // a call that is under way when the launcher closes would count as its loss
}

// abandoners returns the attachments that are Abandoners.
func (a *attachments) abandoners() (list []Abandoner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, attached := range a.byName {
		if b, ok := attached.(Abandoner); ok {
			list = append(list, b)
		}
	}
	return list
}

// leave has later requests for a region that is not there find that this rank has left. It
// returns the names of regions for which ranks wait.
func (t *regionTable) leave() map[int][]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	names := map[int][]string{}
	for name, ranks := range t.waiters {
		for rank := range ranks {
			names[rank] = append(names[rank], name)
		}
	}
	return names
}

// Abandon records that a rank, which has left, never registered the region of a name. Presence
// says so from then on.
func (f *Fabric) Abandon(rank int, name string) { f.regionsLeft(rank, name) }

// regionsLeft records regions that a rank has abandoned, and has goroutines that wait look again.
func (f *Fabric) regionsLeft(rank int, names ...string) {
	f.health.mu.Lock()
	for _, name := range names {
		f.health.left[abandoned{rank, name}] = true
	}
	f.health.mu.Unlock()
	f.Poke()
}

// everyRegion stands for all regions of a rank: it is abandoned once the program of the rank makes no
// more calls at all. No rank registers a region of this name.
const everyRegion = ""

// Left reports whether a rank has left: by its ErrLeft, or by its error if it is gone. It returns nil
// while this rank knows of neither. Left waits for nothing: a goroutine sends the rank a request, once in 16
// seconds, and a later look has the response. A rank that has not left tells this rank later.
func (f *Fabric) Left(rank int) error {
	left := f.Presence(rank, everyRegion)
	if left != nil || !f.health.mayRequest(rank) || f.begin() != nil {
		return left
	}
	go func() {
		defer f.making.Done()
		_ = f.requestLeft(f.ctx, rank) // the next look finds the result
	}()
	return nil
}

// AwaitLeft waits until all of ranks have left, and returns the ErrLeft of the last one. It
// sends a request to one rank at a time, each 16 seconds, without a connection. It returns another error if a
// rank is gone first, or if ctx ends.
func (f *Fabric) AwaitLeft(ctx context.Context, ranks []int) (err error) {
	for i, rank := range ranks {
		_, err = f.awaitRegion(ctx, &awaited{rank: rank, name: everyRegion}, requestAgainMost,
			func() error { return f.Presence(rank, everyRegion) },
			func() (*Remote, error) { return nil, f.requestLeft(ctx, rank) })
		var gone *RankError
		if !errors.As(err, &gone) || gone.Rank != rank || !errors.Is(gone, ErrClosed) {
			return err
		}
		left := &RankError{Rank: rank, Kind: ErrLeft} // or its job is closed already
		if i > 0 {
			left.Cause = "so did all other ranks for which this rank waits"
		}
		err = left
	}
	return err
}

// leavingReply is the response to the service "leaving".
type leavingReply struct {
	Left bool // the rank makes no more calls
}

// requestLeft requests of a rank, without a connection, whether it has left, and waits for the response. It
// returns what this rank then knows, or an error if ctx ends.
func (f *Fabric) requestLeft(ctx context.Context, rank int) error {
	if left := f.Presence(rank, everyRegion); left != nil {
		return left
	}
	var rep leavingReply
	if err := f.call(ctx, rank, "leaving", struct{}{}, &rep); err != nil {
		return err
	}
	if rep.Left {
		f.regionsLeft(rank, everyRegion)
	}
	return f.Presence(rank, everyRegion)
}

// mayRequest reports whether Left may send a rank a request now, and notes that it does.
func (h *health) mayRequest(rank int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at, ok := h.requested[rank]; ok && time.Since(at) < requestAgainMost {
		return false
	}
	h.requested[rank] = time.Now()
	return true
}

// An abandoned region is one of a rank that has left.
type abandoned struct {
	rank int
	name string
}

// Presence returns the error of a rank that is gone, or that has abandoned the region of a name.
// It returns nil while the rank's program may make calls for the region, as far as this rank
// knows. Without a name it returns ErrLeft once the program makes no more calls at all. It sends
// no request: the rank tells the ranks that have sent one, for the region, [Fabric.Left] or
// [Fabric.AwaitLeft].
func (f *Fabric) Presence(rank int, name string) error {
	f.health.mu.Lock()
	defer f.health.mu.Unlock()
	if e := f.health.fate(rank); e != nil {
		return e
	}
	if f.health.left[abandoned{rank, name}] {
		return &RankError{Rank: rank, Kind: ErrLeft}
	}
	return nil
}
