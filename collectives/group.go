package collectives

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A group holds the state that a team's collective calls share at one member. The fields
// from key on belong to the call whose turn it is.
type group struct {
	handle   *runtime.Team
	team     *team.Team
	shapes   *shapes // of all teams of this rank
	selector selector
	buffers  atomic.Uint64 // made so far
	graphs   atomic.Uint64 // the same at every member

	key        team.Key // of the call
	name       string   // of its collective
	layout     layout
	pieces     []piece         // memory here that other members read and write
	shortage   arena.Shortage  // of that memory
	boardGroup *boardGroup     // nil until a call is made on the board
	twoLevel   *twoLevel       // nil where there are no two levels
	edgeQueues *edgeQueues     // nil until a call is made along a graph in mapped memory
	ctx        context.Context // of the call
	transport  *transport      // nil until a call is made by messages
	args       message.Args
	arena      message.Arena
	bound      binding
}

// A layout is blocks by counts and offsets in bytes.
type layout struct{ sendCounts, sendOffsets, recvCounts, recvOffsets []int }

// groupOf returns the team's group, which the first call makes.
func groupOf(t *runtime.Team) (*group, error) {
	if t == nil {
		return nil, runtime.ErrTeam
	}
	inner := team.Of(t)
	if g, ok := inner.Above.Load().(*group); ok {
		return g, nil
	}
	measured, err := tuningOf(inner)
	if err != nil {
		return nil, err
	}
	shared, err := rankStateOf(inner.Fabric, measured.mark)
	if err != nil {
		return nil, err
	}
	g := &group{handle: t, team: inner, shapes: &shared.shapes, selector: newSelector(inner, measured, shared)}
	g.args.Scratch = g.arena.Take
	if g.selector.topology.hasTwoLevels() {
		g.twoLevel = newTwoLevel(g)
	}
	if !inner.Above.CompareAndSwap(nil, g) {
		g = inner.Above.Load().(*group) //nolint:forcetypeassert // nothing else is stored there
	}
	return g, nil
}

// run makes a blocking call.
func run(ctx context.Context, t *runtime.Team, c *Call) error {
	g, d, err := admit(t, c)
	if err != nil {
		return err
	}
	err = g.run(ctx, d, c)
	g.shapes.release(d)
	return err
}

// errPanicked tells the other members that an operator panicked here.
var errPanicked = errors.New("its operator panicked")

// run makes a call that was admitted.
func (g *group) run(ctx context.Context, d *described, c *Call) error {
	ctx = wait.Context(ctx)
	call := &d.call
	key, err := g.team.Calls.Begin(ctx, call)
	if err != nil {
		return g.fail(call, err)
	}
	if c.byProgram {
		err = g.guard(ctx, key, call, c)
	} else {
		err = g.perform(ctx, key, call, c)
	}
	return g.fail(call, g.team.Calls.End(key, call, err))
}

// guard performs a call with an operator of the program. If the operator panics, guard ends
// the call: the program may recover, and other members must not wait for ever.
func (g *group) guard(ctx context.Context, key team.Key, call *team.Call, c *Call) error {
	returned := false
	defer func() {
		if !returned {
			g.abandon()
			_ = g.team.Calls.End(key, call, errPanicked)
		}
	}()
	err := g.perform(ctx, key, call, c)
	returned = true
	return err
}

// abandon ends the use by other members of the memory that a panicked call leased to them.
func (g *group) abandon() {
	if g.boardGroup != nil {
		g.boardGroup.board.Abandon(errPanicked)
	}
	if g.twoLevel != nil && g.twoLevel.boardGroup != nil {
		g.twoLevel.boardGroup.board.Abandon(errPanicked)
	}
}

// admit checks a call's arguments. It finds an error before any other member learns of the
// call.
func admit(t *runtime.Team, c *Call) (*group, *described, error) {
	if c.of == nil {
		c.of = nothing
	}
	g, err := groupOf(t)
	if c.of.edges != nil && c.graph.team() == nil {
		err = errNoGraph // and no team, where the graph would give it
	}
	if err != nil {
		return nil, nil, &OpError{Op: c.of.name, Team: t.Name(), Rank: t.Rank(), Err: err}
	}
	if err := c.checkGraph(g); err != nil {
		return nil, nil, g.refuse(c, err)
	}
	if err := c.check(g.team.Rank, len(g.team.Members)); err != nil {
		return nil, nil, g.refuse(c, err)
	}
	d, err := g.shapes.describe(c)
	if err != nil {
		return nil, nil, g.refuse(c, err)
	}
	if err := g.selector.allows(c, g.team); err != nil {
		return nil, nil, g.fail(&d.call, err)
	}
	return g, d, nil
}

// refuse wraps the error of a call that cannot be described.
func (g *group) refuse(c *Call, err error) error {
	return g.fail(&team.Call{Name: c.of.name}, err)
}

var errNoGraph = fmt.Errorf("%w: the graph is nil; make one by NewGraph or NewCart", runtime.ErrTeam)

// checkGraph returns an error if a call along a graph names a graph of another team.
func (c *Call) checkGraph(g *group) error {
	if c.of.edges == nil || c.graph.group == g {
		return nil
	}
	return fmt.Errorf("%w: the graph is of team %s", runtime.ErrTeam, c.graph.handle.Name())
}

// fail wraps the error of a call.
func (g *group) fail(call *team.Call, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: call.String(), Team: g.team.Name, Rank: g.team.Rank, Err: err}
}

// perform does a call's work, when it is its turn.
func (g *group) perform(ctx context.Context, key team.Key, call *team.Call, c *Call) error {
	g.key, g.name, g.ctx = key, call.Name, ctx
	var err error
	if way := g.selector.choose(c, g.team); way.board {
		err = g.onBoard(ctx, c, way.staged)
	} else {
		err = g.byMessages(g.bound.to(ctx, g.team, g.key), c, way)
	}
	if err != nil {
		return g.verdict(ctx, err)
	}
	return nil
}

// byMessages runs an algorithm of messages.
func (g *group) byMessages(ctx context.Context, c *Call, way *way) error {
	t := g.messages()
	t.pace.begin()
	a := &g.args
	a.Root, a.Elem, a.Send, a.Recv = c.root, c.size, c.send, c.recv
	a.Combine, a.Commutative, a.Ordered = c.combine, c.commutes, c.ordered
	if c.graph != nil {
		a.Neighbors = c.graph.edges
	}
	l := g.layOut(c)
	a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = l.sendCounts, l.sendOffsets, l.recvCounts, l.recvOffsets
	t.begin(g.key, c.size, c.count == team.Varied || c.graph != nil)
	var err error
	if way.Needs&message.HostMap != 0 {
		t.waited = true // on the host's board, perhaps
		err = g.twoLevel.run(ctx, c, way, a)
	} else {
		err = way.Run(ctx, t, a)
	}
	t.pace.end(t.waited, g.sendOff)
	a.Send, a.Recv, a.Combine = nil, nil, nil // the caller's
	g.arena.Reset()
	return err
}

// messages returns the transport, which the first call by messages makes.
func (g *group) messages() *transport {
	if g.transport == nil {
		g.transport = newTransport(g)
	}
	return g.transport
}

// sendOff makes progress, so that the last message leaves.
func (g *group) sendOff() { g.team.Progress() }

// layOut turns a call's blocks into counts and offsets in bytes, nil where they
// are all alike.
func (g *group) layOut(c *Call) layout {
	var used layout
	l := &g.layout
	if !c.of.is(varied) && c.graph == nil {
		return used
	}
	if c.sendBlocks.Counts != nil {
		l.sendCounts, l.sendOffsets = c.sendBlocks.bytes(c.size, l.sendCounts, l.sendOffsets)
		used.sendCounts, used.sendOffsets = l.sendCounts, l.sendOffsets
	}
	switch {
	case c.graph != nil:
		l.recvCounts, l.recvOffsets = c.graph.layOut(c, l.recvCounts, l.recvOffsets)
		used.recvCounts, used.recvOffsets = l.recvCounts, l.recvOffsets
	case c.recvBlocks.Counts != nil:
		l.recvCounts, l.recvOffsets = c.recvBlocks.bytes(c.size, l.recvCounts, l.recvOffsets)
		used.recvCounts, used.recvOffsets = l.recvCounts, l.recvOffsets
	}
	if c.of == reduceScatterV { // algorithms name its blocks by their destination
		used.recvCounts, used.recvOffsets, used.sendCounts, used.sendOffsets = used.sendCounts, used.sendOffsets, nil, nil
	}
	return used
}

// bytes returns counts and offsets in bytes, in slices that are used again.
func (b *Blocks) bytes(size int, counts, offsets []int) ([]int, []int) {
	counts, offsets = counts[:0], offsets[:0]
	at := 0
	for i, count := range b.Counts {
		if b.Offsets != nil {
			at = b.Offsets[i]
		}
		counts, offsets = append(counts, count*size), append(offsets, at*size)
		at += count
	}
	return counts, offsets
}

// verdict returns the reason why a call failed. The end of the team or of ctx takes
// precedence over the error of an algorithm.
func (g *group) verdict(ctx context.Context, err error) error {
	if bad := g.team.Err(); bad != nil {
		return bad
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// unlike returns an error that names two members with different lengths, in bytes, for a
// block between them.
func (g *group) unlike(member, theirs, mine int) error {
	return &runtime.MismatchError{Team: g.team.Name, Rank: g.team.Members[g.team.Rank], Other: g.team.Members[member],
		Call: fmt.Sprintf("%s with a block of %d bytes between the two", g.name, mine), OtherDid: fmt.Sprintf("%s with one of %d", g.name, theirs)}
}
