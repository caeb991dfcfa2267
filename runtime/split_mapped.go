package runtime

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
)

// Members that map each other's memory give their choices to Split in words at the first member, and no
// message goes through the launcher. Each stores its word, makes the barrier, and reads all words:
//
//	choice words:  two for each member, which Splits use by turns
//	               63             32 31           0
//	               color + 1         key
//	outcome word:  63                    1   0
//	               number of the call      all choices are there
//
// A member that stores the word of the next Split but one has passed the barrier of the next one. So all
// members have read the word that it replaces.
//
// Members leave a barrier one by one. If one is lost or gives up, some may have passed and others not. So
// the first member to end the barrier stores the outcome of the call, and all others go by that: all have
// the choices, or none makes a team. The word outlives the first member's process in those that map it.
//
// A member may begin its next Split while another one is still in this call, and may give that one up. It got
// this call's choices, so they are complete. No member passes the next barrier before the late one arrives
// there. So no member replaces the words of this call before that, and no later outcome is true.

// choicesMost is the largest number of members of a team with such words.
const choicesMost = (roomOffset - choicesOffset) / (2 * 8)

// byLauncher in place of a color has all members exchange choices through the launcher: one has more to
// say than fits in a word.
const byLauncher = math.MaxUint32

// gathersInMemory reports whether the team has words for choices. All members get the same result.
func (t *Team) gathersInMemory() bool { return t.inner.Mapped && len(t.members) <= choicesMost }

// word returns a choice as a word.
func (c *choice) word() uint64 {
	color := uint64(c.color + 1)
	if c.bad != "" || color >= byLauncher || c.key != int(int32(c.key)) {
		return byLauncher << 32
	}
	return color<<32 | uint64(uint32(c.key))
}

// choiceOf returns the choice in a word.
func choiceOf(word uint64) choice { return choice{color: int(word>>32) - 1, key: int(int32(word))} }

// gatherMapped makes the barrier of the call and gathers the choices by words. It returns nil without an
// error if the launcher has to carry them.
func (s *split) gatherMapped(ctx context.Context) ([]choice, error) {
	t := s.parent
	first, err := t.blockOf(ctx, 0)
	if err != nil {
		return nil, err
	}
	set := first.Mem[choicesOffset+int(t.gathers%2)*8*len(t.members):]
	word := func(m int) *atomic.Uint64 { return atomics.Word64(set[8*m:]) }
	t.gathers++
	word(t.rank).Store(s.mine.word()) // the barrier orders it ahead of the loads below
	err = t.barrier.arrive(ctx, s.at, team.Split)
	mutant.Hesitate(mutant.Call)
	if !decide(atomics.Word64(first.Mem[outcomeOffset:]), s.at.Seq, err == nil) {
		if err == nil { // another member gave up: its word of that, or of its death, is under way
			err = t.inner.Await(ctx, func() bool { return false })
		}
		return nil, err
	}
	if b, ok := t.barrier.(releasing); ok && err != nil { // all have arrived, but some wait for flags of this member
		mutant.Hesitate(mutant.Call)
		if err = b.release(ctx, s.at, team.Split); err != nil {
			return nil, err
		}
	}
	all := make([]choice, len(t.members))
	for m := range all {
		v := word(m).Load()
		if v>>32 == byLauncher {
			return nil, nil
		}
		all[m] = choiceOf(v)
	}
	return all, nil
}

// decide returns the outcome of the call of number seq. That is complete unless another member decided ahead
// of this one. A member that decided a later call got the choices of this one.
func decide(outcome *atomic.Uint64, seq uint64, complete bool) bool {
	mine := seq << 1
	if complete {
		mine |= 1
	}
	for {
		old := outcome.Load()
		switch decided := old >> 1; {
		case decided > seq:
			return true
		case decided == seq:
			return old&1 == 1
		}
		if outcome.CompareAndSwap(old, mine) {
			return complete
		}
	}
}
