package window_test

import (
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/window"
)

// A program is a random sequence of operations of ranks on each other's memory,
// in rounds that end with a fence. Its outcome does not depend on the ranks'
// speed:
//
//	elements 0..19   in runs of 5, each of which one rank owns for a round
//	elements 20..23  of all ranks, which do the same kind of sum in a round
//	element 24       of all ranks, which add to it under the target's lock
//	attached 0..4    a further run, in memory that its rank has attached
//	slots 0..3       of all ranks, which add to them
type program struct {
	ranks  int
	home   home
	rounds []round
}

// A home is the place of a window's elements.
type home int

const (
	heapHome   home = iota
	lentHome        // memory of the program
	deviceHome      // a kind that RDMA devices refuse
)

// A round ends with a fence, or is an epoch of each rank for all ranks.
type round struct {
	actions []action // all ranks' actions, in each rank's order
	epoch   bool
	renew   renewal // after the round
}

// A renewal replaces memory, which keeps its content.
type renewal int

const (
	keep renewal = iota
	reallocate
	reattach
	renewals
)

const (
	runs      = 4
	runLength = 5
	owned     = runs * runLength
	common    = 4
	locked    = owned + common
	elements  = locked + 1
	attached  = elements // in a memory
	slots     = attached + runLength
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
	doPutBlocks
	doStartPutBlocks
	doNotifyBlocks
	doGetBlocks
	doPutSignal
	doStartPutSignal
	ownKinds // those from here on are for the common elements
)

// A way is a window on the memory of a program.
type way int

const (
	direct way = iota
	behind     // a part that begins at element 2
	queued     // the window through a queue
	ways
	leased // attached memory
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
	p := &program{ranks: ranks, home: rapid.SampledFrom([]home{heapHome, lentHome, deviceHome}).Draw(t, "home")}
	for number := range rapid.IntRange(1, 6).Draw(t, "rounds") {
		now := round{epoch: rapid.Bool().Draw(t, "epoch"), renew: renewal(rapid.IntRange(0, int(renewals)-1).Draw(t, "renewal"))}
		if p.home != heapHome && now.renew == reallocate {
			now.renew = keep // the memory is the program's
		}
		touched := map[[2]int]bool{}
		for range rapid.IntRange(0, 60).Draw(t, "actions") {
			a := action{target: rapid.IntRange(0, ranks-1).Draw(t, "target"), value: rapid.Uint64().Draw(t, "value")}
			a.way = way(rapid.IntRange(0, int(ways)-1).Draw(t, "way"))
			if a.sum = rapid.Bool().Draw(t, "sum"); a.sum {
				a.origin = rapid.IntRange(0, ranks-1).Draw(t, "origin")
				a.index = owned + rapid.IntRange(0, common).Draw(t, "element")
			} else {
				run := rapid.IntRange(0, runs).Draw(t, "run")
				a.kind = kind(rapid.IntRange(0, int(ownKinds)-1).Draw(t, "kind"))
				a.origin = p.owner(number, a.target, run)
				first := rapid.IntRange(0, runLength-1).Draw(t, "first")
				a.n = rapid.IntRange(1, runLength-first).Draw(t, "n")
				a.index = run*runLength + first
				if run == runs {
					a.attach(first)
				}
				a.flush = touched[[2]int{a.target, run}]
				touched[[2]int{a.target, run}] = true
			}
			now.actions = append(now.actions, a)
		}
		p.rounds = append(p.rounds, now)
	}
	return p
}

// attach moves an action to attached memory, which has no slots.
func (a *action) attach(first int) {
	a.way, a.index = leased, attached+first
	switch a.kind {
	case doNotify:
		a.kind = doPut
	case doNotifyBlocks:
		a.kind = doPutBlocks
	}
}

// signaled returns the common element that a signal of the round adds to.
func signaled(round int, a action) int { return owned + round%2 + 2*(a.index%2) }

// memory is every rank's elements, attached memory and slots.
type memory [][]uint64

func (p *program) memory() memory {
	m := make(memory, p.ranks)
	for i := range m {
		m[i] = make([]uint64, slots+4)
	}
	return m
}

// model does an action on m and returns the value that it reads.
func (m memory) model(round int, a action) (read []uint64) {
	mem := m[a.target]
	if a.sum {
		if a.index == locked || (round+a.index)%2 == 0 {
			mem[a.index] += a.value
		} else {
			mem[a.index] ^= a.value
		}
		return nil
	}
	switch a.kind {
	case doPut, doStartPut, doNotify, doPutSignal, doStartPutSignal:
		for i := range a.n {
			mem[a.index+i] = a.value + uint64(i)
		}
		m.signal(round, a)
	case doPutBlocks, doStartPutBlocks, doNotifyBlocks:
		for i := 0; i < a.n; i += 2 {
			mem[a.index+i] = a.value + uint64(i)
		}
		m.signal(round, a)
	case doGetBlocks:
		for i := 0; i < a.n; i += 2 {
			read = append(read, mem[a.index+i])
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

// signal changes the model as the signal of an action changes a slot or an element.
func (m memory) signal(round int, a action) {
	switch a.kind {
	case doNotify, doNotifyBlocks:
		m[a.target][slots+a.index%4] += a.value
	case doPutSignal, doStartPutSignal:
		m[a.target][signaled(round, a)] += a.value
	}
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
