package window_test

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// A program is a random sequence of operations of ranks on each other's memory,
// in rounds that end with a fence. Its outcome does not depend on the ranks'
// speed:
//
//	elements 0..19   in runs of 5, each of which one rank owns for a round
//	elements 20..23  of all ranks, which do the same kind of sum in a round
//	slots 0..3       of all ranks, which add to them
type program struct {
	ranks  int
	lent   bool       // the window has memory of the program
	rounds [][]action // all ranks' actions, in each rank's order
}

const (
	runs      = 4
	runLength = 5
	owned     = runs * runLength
	common    = 4
)

type kind int

const (
	doPut kind = iota
	doPutValue
	doStartPut
	doNotify
	doGet
	doStartGet
	doSwap
	doCompareSwap
	doStore
	doAccumulate
	doGetAccumulate
	doStartFetch
	doOrder
	ownKinds // those from here on are for the common elements
)

// A way is a window on the memory of a program.
type way int

const (
	direct way = iota
	behind     // a part that begins at element 2
	queued     // the window through a queue
	ways
)

// An action is one operation of origin at target.
type action struct {
	kind   kind
	way    way
	sum    bool // one of the round's sums on a common element
	flush  bool // before it, since it reads or writes the run of an earlier one of this round
	origin int
	target int
	index  int
	n      int
	value  uint64
}

// owner returns the rank that may touch a run in a round.
func (p *program) owner(round, target, run int) int { return (round + target + run) % p.ranks }

func drawProgram(t *rapid.T, ranks int) *program {
	p := &program{ranks: ranks, lent: rapid.Bool().Draw(t, "lent")}
	for round := range rapid.IntRange(1, 6).Draw(t, "rounds") {
		var actions []action
		touched := map[[2]int]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "actions") {
			a := action{target: rapid.IntRange(0, ranks-1).Draw(t, "target"), value: rapid.Uint64().Draw(t, "value")}
			a.way = way(rapid.IntRange(0, int(ways)-1).Draw(t, "way"))
			if a.sum = rapid.Bool().Draw(t, "sum"); a.sum {
				a.origin = rapid.IntRange(0, ranks-1).Draw(t, "origin")
				a.index = owned + rapid.IntRange(0, common-1).Draw(t, "element")
			} else {
				run := rapid.IntRange(0, runs-1).Draw(t, "run")
				a.kind = kind(rapid.IntRange(0, int(ownKinds)-1).Draw(t, "kind"))
				a.origin = p.owner(round, a.target, run)
				first := rapid.IntRange(0, runLength-1).Draw(t, "first")
				a.n = rapid.IntRange(1, runLength-first).Draw(t, "n")
				a.index = run*runLength + first
				a.flush = touched[[2]int{a.target, run}]
				touched[[2]int{a.target, run}] = true
			}
			actions = append(actions, a)
		}
		p.rounds = append(p.rounds, actions)
	}
	return p
}

// memory is every rank's elements and slots.
type memory [][]uint64

func (p *program) memory() memory {
	m := make(memory, p.ranks)
	for i := range m {
		m[i] = make([]uint64, owned+common+4)
	}
	return m
}

// model does an action on m and returns the value that it reads.
func (m memory) model(round int, a action) (read []uint64) {
	mem := m[a.target]
	if a.sum {
		if (round+a.index)%2 == 0 {
			mem[a.index] += a.value
		} else {
			mem[a.index] ^= a.value
		}
		return nil
	}
	switch a.kind {
	case doPut, doStartPut, doNotify:
		for i := range a.n {
			mem[a.index+i] = a.value + uint64(i)
		}
		if a.kind == doNotify {
			mem[owned+common+a.index%4] += a.value
		}
	case doGet, doStartGet:
		read = append(read, mem[a.index:a.index+a.n]...)
	case doPutValue, doStore:
		mem[a.index] = a.value
	case doAccumulate, doGetAccumulate:
		for i := range a.n {
			if a.kind == doGetAccumulate {
				read = append(read, mem[a.index+i])
			}
			mem[a.index+i] = combine(round, mem[a.index+i], a.value+uint64(i))
		}
	case doStartFetch:
		read = append(read, mem[a.index])
		mem[a.index] = combine(round, mem[a.index], a.value)
	case doSwap:
		read = append(read, mem[a.index])
		mem[a.index] = a.value
	case doCompareSwap:
		read = append(read, mem[a.index])
		if mem[a.index] == a.value%2 {
			mem[a.index] = a.value
		}
	}
	return read
}

// combine is the model of the round's operator.
func combine(round int, element, operand uint64) uint64 {
	switch round % 3 {
	case 0:
		return element * operand
	case 1:
		return max(element, operand)
	}
	return operand
}

func operatorOf(round int) window.Op[uint64] {
	return []window.Op[uint64]{window.Prod[uint64](), window.Max[uint64](), window.Replace[uint64]()}[round%3]
}

// A stage holds the windows of a program at one rank, by way.
type stage struct {
	windows [ways]*window.Window[uint64]
	queue   *window.Queue
}

func newStage(ctx context.Context, r *testjob.Rank, lent bool) (s stage, err error) {
	if lent {
		s.windows[direct], err = window.Create(ctx, r.World, make([]uint64, owned+common))
	} else {
		s.windows[direct], err = window.Allocate[uint64](ctx, r.World, owned+common)
	}
	if err != nil {
		return s, err
	}
	if s.windows[behind], err = window.Part[uint64](s.windows[direct], 16, owned+common-2); err != nil {
		return s, err
	}
	if s.queue, err = window.NewQueue(r.World); err == nil {
		s.windows[queued], err = s.windows[direct].Through(s.queue)
	}
	return s, err
}

// fence ends a round.
func (s *stage) fence(ctx context.Context) error {
	if err := s.queue.FlushAll(ctx); err != nil {
		return err
	}
	return s.windows[direct].Fence(ctx)
}

// play does an action and returns the value that it reads.
func play(ctx context.Context, s *stage, round int, a action) (read []uint64, err error) {
	if a.flush {
		for _, w := range s.windows {
			if err := w.Flush(ctx, a.target); err != nil {
				return nil, err
			}
		}
	}
	if a.way == behind && a.index < 2 {
		a.way = direct
	}
	return playIn(ctx, s.windows[a.way], round, a)
}

func playIn(ctx context.Context, w *window.Window[uint64], round int, a action) (read []uint64, err error) {
	slot := a.index % 4
	even := (round+a.index)%2 == 0
	if a.way == behind {
		a.index -= 2
	}
	if a.sum {
		if even {
			if a.value%2 == 0 {
				return nil, window.Accumulate(ctx, w, a.target, a.index, []uint64{a.value}, window.Sum[uint64]())
			}
			return nil, window.AtomicAdd(ctx, w, a.target, a.index, a.value)
		}
		return nil, window.AtomicXor(ctx, w, a.target, a.index, a.value)
	}
	buf := make([]uint64, a.n)
	for i := range buf {
		buf[i] = a.value + uint64(i)
	}
	switch a.kind {
	case doPut:
		return nil, w.Put(ctx, a.target, a.index, buf)
	case doNotify:
		return nil, w.PutNotify(ctx, a.target, a.index, buf, window.Signal{Slot: slot, Add: true, Value: a.value})
	case doStartPut:
		return nil, wait(ctx)(w.StartPut(ctx, a.target, a.index, buf))
	case doStartGet:
		return buf, wait(ctx)(w.StartGet(ctx, a.target, a.index, buf))
	case doGet:
		return buf, w.Get(ctx, a.target, a.index, buf)
	case doPutValue:
		return nil, w.PutValue(ctx, a.target, a.index, a.value)
	case doStore:
		return nil, window.AtomicStore(ctx, w, a.target, a.index, a.value)
	case doAccumulate:
		return nil, window.Accumulate(ctx, w, a.target, a.index, buf, operatorOf(round))
	case doGetAccumulate:
		return buf, wait(ctx)(window.StartGetAccumulate(ctx, w, a.target, a.index, buf, buf, operatorOf(round)))
	case doStartFetch:
		old := make([]uint64, 1)
		return old, wait(ctx)(window.StartFetchOp(ctx, w, a.target, a.index, a.value, operatorOf(round), &old[0]))
	case doOrder:
		return nil, w.Order(a.target)
	case doSwap:
		old, err := window.Swap(ctx, w, a.target, a.index, a.value)
		return []uint64{old}, err
	case doCompareSwap:
		seen, err := window.CompareSwap(ctx, w, a.target, a.index, a.value%2, a.value)
		return []uint64{seen}, err
	}
	return nil, fmt.Errorf("no action %d", a.kind)
}

func wait(ctx context.Context) func(window.Request, error) error {
	return func(r window.Request, err error) error {
		if err != nil {
			return err
		}
		return r.Wait(ctx)
	}
}
