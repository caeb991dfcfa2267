package window

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// core is the part of a window or a part that does not depend on the element type.
type core struct {
	*segment
	name string
	id   uint64 // in pointers, see team.ID
	// entryBits is the entry of attached memory, in pointers; see placed.
	entryBits int64
	layout    layout
	options   options
	lengths   []int // elements by target; nil if all have as many as this rank
	// remotes are the targets' memory, once this rank reached it. Parts share them.
	remotes []atomic.Pointer[fabric.Remote]
	// bodies are the targets' elements if the program lent them: then remotes have only the
	// words ahead of the elements. A target in remotes is in bodies.
	bodies []atomic.Pointer[fabric.Remote]
	via    *Queue // carries the operations; nil: the job's own connections do
	under  *core  // with via: the same window without it

	transfers sync.Pool // of *transfer
	lays      sync.Pool // of *fabric.Blocks
}

// A segment is the part of a window that its parts share.
type segment struct {
	team   *team.Team
	region string // name of the memory in the fabric
	block  arena.Block
	mine   *fabric.Region
	gates  []atomic.Pointer[gate] // by target, nil before the first wait for its lock
	locks  locks                  // that this rank holds
	epochs epochs                 // of this rank
	parts  parts
	array  *array // of AllocateShared, else nil
	lent   *lent  // of Create, else nil
	lease  *lease // of attached memory, else nil

	attached attachments
	freed    atomic.Bool
	updates  updates // of wide elements, through no queue
	// watching counts goroutines of this rank that wait for elements. Free gives the
	// elements back once there are none.
	watching atomic.Int64
}

// windowCard carries the arguments of Allocate, which all ranks of the team
// compare.
type windowCard struct {
	Type   string
	Size   int
	Elems  int
	Slots  int
	Varied bool // Elems is the rank's own number
	Shared bool
	Align  int
	Attach int    // entries for attached memory
	Lent   int    // alignment of the memory of Create, which may differ; else 0
	Err    string // cause: this rank cannot make the window
	Kind   string // name of the error in kinds
}

// newCore makes a window together with the team's other ranks. A rank that cannot
// make it tells the team, so that the call fails at every rank and none waits.
func newCore(ctx context.Context, t *runtime.Team, typ string, size, elems int, bad error, opts []Option) (*core, error) {
	if t == nil || team.Of(t) == nil {
		return nil, &OpError{Op: "Allocate", Window: "(new)", Rank: -1, Target: -1, Index: -1, Err: ErrTeam}
	}
	inner := team.Of(t)
	o := options{slots: DefaultSlots, align: lineSize}
	for _, opt := range opts {
		bad = errors.Join(bad, opt(&o))
	}
	region := inner.Name + "/window" + strconv.FormatUint(inner.Windows.Add(1), 10)
	c := &core{segment: &segment{team: inner, region: region}, name: o.name}
	if c.id = team.ID(c.region); c.name == "" {
		c.name = c.region
	}
	c.options, c.lent = o, o.lent
	if bad == nil && o.shared {
		bad = mappable(inner)
	}
	if bad == nil {
		bad = c.prepare(ctx, size, elems, &o)
	}
	inner.BeginUse(c.region, c.abandonLocks)
	card := refusalCard(bad)
	card.Lent = c.lent.align()
	card.Type, card.Size, card.Elems, card.Slots, card.Varied, card.Shared, card.Align, card.Attach =
		typ, size, elems, o.slots, o.varied, o.shared, o.align, o.attachments
	err := c.agree(ctx, card, bad)
	if err == nil && o.shared {
		err = c.share(ctx)
	}
	if err != nil {
		inner.EndUse(c.region)
		return nil, errors.Join(c.fail("Allocate", err), c.giveUp(bad == nil && team.OutcomeUnknown(err)))
	}
	return c, nil
}

// refusalCard returns a card of a rank that cannot go on because of err, if any.
func refusalCard(err error) (card windowCard) {
	if err != nil {
		card.Err, card.Kind = err.Error(), kindOf(err)
	}
	return card
}

// prepare allocates and publishes this rank's memory.
func (c *core) prepare(ctx context.Context, size, elems int, o *options) (err error) {
	ranks := len(c.team.Members)
	if c.layout, err = newLayout(elems, size, o, ranks); err != nil {
		return err
	}
	if err = c.placeElements(o); err != nil {
		return err
	}
	if o.shared || o.lent != nil {
		c.layout.total = c.layout.elem0
	}
	if c.block, err = c.team.Arena().AllocAligned(c.layout.total, o.align); err != nil {
		return err
	}
	c.remotes = make([]atomic.Pointer[fabric.Remote], ranks)
	c.gates = make([]atomic.Pointer[gate], ranks)
	if c.mine, err = c.team.Register(ctx, c.region, c.block.Memory); err == nil && o.lent != nil {
		err = c.registerLent(ctx)
	}
	return err
}

// agree compares this rank's card with the cards of all ranks.
func (c *core) agree(ctx context.Context, card windowCard, bad error) error {
	mine, err := json.Marshal(card)
	if err != nil {
		return err
	}
	cards, err := c.team.Swap(ctx, team.Allocate, mine)
	if bad != nil || err != nil {
		return errors.Join(bad, err)
	}
	for r, b := range cards {
		if bytes.Equal(b, mine) {
			continue
		}
		var other windowCard
		if err := json.Unmarshal(b, &other); err != nil {
			return fmt.Errorf("card of rank %d: %w", r, err)
		}
		if other.Err != "" {
			return &refusal{rank: r, cause: other.Err, kind: kinds[other.Kind]}
		}
		if c.setLength(r, other.Elems); card.Varied {
			other.Elems = card.Elems
		}
		if card.Lent != 0 && other.Lent != 0 {
			c.lent.least, other.Lent = min(c.lent.least, other.Lent), card.Lent
		}
		if other != card {
			return fmt.Errorf("%w: rank %d has %s, rank %d has %s", runtime.ErrMismatch, c.team.Rank, card, r, other)
		}
	}
	return nil
}

// setLength notes that a target has another number of elements.
func (c *core) setLength(target, elems int) {
	if c.lengths == nil {
		c.lengths = slices.Repeat([]int{c.layout.elems}, len(c.remotes))
	}
	c.lengths[target] = elems
}

// length returns the number of elements at a target.
func (c *core) length(target int) int {
	if uint(target) < uint(len(c.lengths)) {
		return c.lengths[target]
	}
	return c.layout.elems
}

// String describes the window in the error of members whose windows differ.
func (w windowCard) String() string {
	s := fmt.Sprintf("%d x %s of %d bytes and %d slots", w.Elems, w.Type, w.Size, w.Slots)
	if w.Align != lineSize {
		s += fmt.Sprintf(", aligned to %d", w.Align)
	}
	if w.Attach != 0 {
		s += fmt.Sprintf(", %d attachments", w.Attach)
	}
	if w.Shared {
		s += ", in one array"
	}
	if w.Lent != 0 {
		s += ", of the program"
	}
	return s
}

// giveUp gives this rank's memory back, unless other members may still use it.
func (c *core) giveUp(used bool) error {
	err := c.giveBack(used, c.mine, c.block)
	if c.array != nil {
		err = errors.Join(err, c.giveBack(used, c.array.mine, c.array.block))
	}
	err = errors.Join(err, c.lent.giveBack(c, used))
	for _, e := range c.attached.entries {
		err = errors.Join(err, c.giveBack(used, e.mine, e.block))
	}
	return err
}

// giveBack is giveUp for one block and its region.
func (c *core) giveBack(used bool, mine *fabric.Region, b arena.Block) error {
	if used && mine != nil {
		c.team.Quarantine(mine, b)
		return nil
	}
	return c.team.GiveBack(mine, b)
}

// fail wraps an error of an operation that concerns no single target.
func (c *core) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Window: c.name, Rank: c.team.Rank, Target: -1, Index: -1, Err: err}
}

// failAt wraps an error of an operation on count elements from index at target.
func (c *core) failAt(op string, target, index, count int, err error) error {
	if err == nil {
		return nil
	}
	return c.opError(op, target, index, count, err)
}

// opError wraps an error of an operation with its name, target and elements. A null operation has no
// error.
func (c *core) opError(op string, target, index, count int, err error) error {
	if errors.Is(err, errNull) {
		return nil
	}
	return &OpError{Op: op, Window: c.name, Rank: c.team.Rank, Target: target, Index: index, Count: count,
		Limit: c.length(target), Err: err}
}

// reach checks an operation's arguments and returns the target's memory.
func (c *core) reach(ctx context.Context, target, index, count int) (*fabric.Remote, error) {
	if n := c.length(target); target != Null && (index < 0 || count < 0 || index > n-count) {
		return nil, fmt.Errorf("%d elements from index %d: %w [0, %d)", count, index, ErrRange, n)
	}
	r, err := c.remote(ctx, target)
	if err == nil && c.lent != nil {
		r = c.bodies[target].Load()
	}
	return r, err
}

// remote returns the target's memory. The first use connects to the target.
func (c *core) remote(ctx context.Context, target int) (*fabric.Remote, error) {
	if c.ended() {
		return nil, ErrFreed
	}
	if target == Null {
		return nil, errNull
	}
	if uint(target) >= uint(len(c.remotes)) {
		return nil, fmt.Errorf("target %d: %w [0, %d)", target, ErrRange, len(c.remotes))
	}
	if r := c.remotes[target].Load(); r != nil {
		return r, nil
	}
	r, err := c.connect(ctx, target)
	if err == nil && c.ended() { // Free or the queue's Close may have missed this entry
		c.retire()
		return nil, ErrFreed
	}
	return r, err
}

// connect finds the target's memory for all later uses.
func (c *core) connect(ctx context.Context, target int) (*fabric.Remote, error) {
	r, err := c.resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	if !c.remotes[target].CompareAndSwap(nil, r) {
		return c.remotes[target].Load(), nil
	}
	return r, nil
}

// ended reports whether the window or its queue has ended.
func (c *core) ended() bool { return c.freed.Load() || c.via != nil && c.via.closed.Load() }

// resolve connects to the target and finds its memory.
func (c *core) resolve(ctx context.Context, target int) (*fabric.Remote, error) {
	r, err := c.team.Resolve(ctx, c.team.Members[target], c.region)
	if err == nil && c.lent != nil {
		if r, err = c.resolveLent(ctx, target, r); err != nil {
			return nil, err
		}
	}
	if err == nil && c.via != nil {
		return c.via.inner.Remote(ctx, r)
	}
	return r, err
}

// retire has all posts of this rank on the targets' memory fail.
func (c *core) retire() {
	for i := range c.remotes {
		if r := c.remotes[i].Load(); r != nil {
			r.Retire(ErrFreed)
		}
	}
	for i := range c.bodies {
		if r := c.bodies[i].Load(); r != nil {
			r.Retire(ErrFreed)
		}
	}
}
