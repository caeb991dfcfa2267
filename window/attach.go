package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A rank attaches memory to a window without a collective call. An entry of the window's region is
// one word at the owner. It says which attachment is there, and counts the leases that ranks have
// taken on it:
//
//	63          32 31     0
//	generation     leases      the generation is odd while memory is attached
//
//	owner                              another rank
//	Attach: register, generation++
//	                                   Open: fetch and add a lease. If the generation is that
//	                                   of the pointer, find the region; else take it back
//	Detach: generation++               Close: flush, take the lease back
//	no leases: free the memory
//
// The word outlives all attachments of its entry. A lease that a rank takes before Detach keeps
// the memory, and a rank that adds later sees another generation. So no rank reaches freed
// memory, and Detach waits for no rank. A rank that dies keeps its leases: then the memory stays
// until the window's Free.
const (
	generationShift = 32
	oneGeneration   = uint64(1) << generationShift
	lastGeneration  = math.MaxUint32 - 2 // an entry is used no more then
)

// maxAttachments keeps the entries of a window to a size that every rank can afford.
const maxAttachments = 1 << 20

// attachments holds what this rank has attached to a window, and the leases that it holds.
type attachments struct {
	mu       sync.Mutex
	entries  []attachment                // used so far
	free     []int                       // entries without memory
	detached []int                       // entries whose memory ranks may still use
	leases   map[*core]func(cause error) // the window of each lease, and the function that ends it
	ended    bool
}

// An attachment is memory of this rank in an entry.
type attachment struct {
	id    uint64 // in pointers, 0 once it is detached
	block arena.Block
	mine  *fabric.Region
}

// Attach adds n elements of this rank's heap, zeroed, to the window, which [WithAttachments]
// gave room for. Other ranks reach them by the pointer to the first: [Window.Open] takes it. The
// pointer is a value that windows and pipes carry; the elements are no part of Len and Local. Attach
// returns them as a slice, too, which holds until [Window.Detach].
//
// [ErrExhausted] says that the heap or the room is used up. Kind: local.
func (w *Window[T]) Attach(ctx context.Context, n int) (Pointer[T], []T, error) {
	p, block, err := w.attach(wait.Context(ctx), n)
	if err != nil {
		return Pointer[T]{}, nil, w.fail("Attach", err)
	}
	elems := element.View[T](block.Bytes[w.attachedLayout(n).elem0:], n)
	return Pointer[T]{window: p.id, target: p.target}, elems, nil
}

// place is where a pointer to the first element of an attachment leads.
type place struct {
	id     uint64
	target int64
}

// attach allocates and registers memory, then publishes it by the next generation of an entry.
// Peers find it by the pointer at once. After an error nothing is published.
func (c *core) attach(ctx context.Context, n int) (at place, b arena.Block, err error) {
	a := &c.attached
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return at, b, ErrFreed
	}
	if n < 0 || n > (math.MaxInt64/2)/c.layout.size {
		return at, b, fmt.Errorf("%d elements: %w", n, ErrRange)
	}
	entry, word, err := c.freeEntry(ctx)
	if err != nil {
		return at, b, err
	}
	if b, err = c.team.Arena().Alloc(c.attachedLayout(n).total); err != nil {
		return at, b, err
	}
	name := c.attachedName(entry, word>>generationShift+1)
	mine, err := c.team.Register(ctx, name, b.Memory)
	if err == nil {
		_, err = c.entry(ctx, c.team.Rank, entry, oneGeneration)
	}
	if err != nil {
		return at, b, errors.Join(err, c.giveBack(false, mine, b))
	}
	at = place{team.ID(name), placed(c.team.Rank, entry)}
	a.entries[entry], a.free = attachment{id: at.id, block: b, mine: mine}, a.free[:len(a.free)-1]
	return at, b, nil
}

// Detach ends the attachment to which p leads, which this rank has made. Later calls of Open with
// its pointers return [ErrPointer]. Ranks that have opened it may go on until [Attached.Close].
// Then this rank's next Attach, Detach or Free gives the memory back. Detach waits for no rank.
// Kind: local.
func (w *Window[T]) Detach(ctx context.Context, p Pointer[T]) error {
	return w.fail("Detach", w.detach(wait.Context(ctx), place{p.window, p.target}, p))
}

// detach ends the entry's generation, which makes pointers to the memory stale. The memory comes
// back once no peer can use it any more.
func (c *core) detach(ctx context.Context, at place, p fmt.Stringer) error {
	a := &c.attached
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return ErrFreed
	}
	target, entry := at.split()
	if target != c.team.Rank || uint(entry) >= uint(len(a.entries)) || a.entries[entry].id != at.id || at.id == 0 {
		return fmt.Errorf("%v: %w: this rank has not attached it, or has detached it", p, ErrPointer)
	}
	if _, err := c.entry(ctx, target, entry, oneGeneration); err != nil {
		return err
	}
	a.entries[entry].id = 0
	a.detached = append(a.detached, entry)
	return c.reclaim(ctx)
}

// reclaim frees detached memory on which no rank has a lease. The caller holds mu.
func (c *core) reclaim(ctx context.Context) error {
	a := &c.attached
	var errs []error
	a.detached = slices.DeleteFunc(a.detached, func(entry int) bool {
		word, err := c.entry(ctx, c.team.Rank, entry, 0)
		errs = append(errs, err)
		if err != nil || uint32(word) != 0 && !mutant.DetachForgetsLeases {
			return false
		}
		e := a.entries[entry]
		errs = append(errs, c.giveBack(false, e.mine, e.block))
		a.entries[entry] = attachment{}
		a.free = append(a.free, entry)
		return true
	})
	return errors.Join(errs...)
}

// freeEntry returns an entry without memory, and its word. The caller holds mu.
func (c *core) freeEntry(ctx context.Context) (entry int, word uint64, err error) {
	if err := c.reclaim(ctx); err != nil {
		return 0, 0, err
	}
	a := &c.attached
	if len(a.entries) < c.layout.attachments {
		a.free = append(a.free, len(a.entries))
		a.entries = append(a.entries, attachment{})
	}
	for last := len(a.free) - 1; last >= 0; last-- {
		entry = a.free[last]
		if word, err = c.entry(ctx, c.team.Rank, entry, 0); err != nil || word>>generationShift < lastGeneration {
			return entry, word, err
		}
		a.free = a.free[:last] // its generations are used up
	}
	return 0, 0, fmt.Errorf("%w: %d attachments; WithAttachments gives room for more", ErrExhausted, c.layout.attachments)
}

// entry adds by to the word of a target's entry, and returns the word's earlier value.
func (c *core) entry(ctx context.Context, target, entry int, by uint64) (uint64, error) {
	r, err := c.remote(ctx, target)
	if err != nil {
		return 0, err
	}
	return c.at(ctx, r, c.layout.attachment(entry), driver.AtomicAdd, by, 0)
}

// attachedLayout returns the layout of memory that is attached: the words of a window without
// slots, and n elements.
func (c *core) attachedLayout(n int) layout {
	l, _ := newLayout(n, c.layout.size, &options{align: lineSize}, len(c.remotes)) // attach has checked n
	l.total = l.elem0 + n*l.size
	return l
}

func (c *core) attachedName(entry int, generation uint64) string {
	return fmt.Sprintf("%s/attached%d.%d", c.region, entry, generation)
}

// placed returns the target field of a pointer into an entry.
func placed(target, entry int) int64 { return int64(target) | int64(entry+1)<<32 }

// split is the inverse of placed. entry is -1 for a pointer into a window's own elements.
func (p place) split() (target, entry int) { return int(int32(p.target)), int(p.target>>32) - 1 }
