//go:build linux

package main

import (
	"math"
	"slices"
	"time"
)

// A turn is the time of a call by the built-in choice and by its rival, one right behind
// the other.
type turn struct{ builtIn, rival time.Duration }

const (
	leastTurns = 8
	mostTurns  = 48
	// doubt is the probability with which a bound on a median may be wrong.
	doubt = 0.025
	// clearlyFaster: a rival that takes more than this part of the built-in choice's time is
	// not worth a rule.
	clearlyFaster = 0.97
)

// An outcome compares a rival with the built-in choice.
type outcome struct {
	builtIn, rival time.Duration // medians
	atMost         float64       // upper bound of the median of rival/builtIn
}

// faster reports whether the rival is faster beyond the noise.
func (v outcome) faster() bool { return v.atMost <= clearlyFaster }

// judge compares the times of turns. The bound is that of the sign test: it holds for
// noise of any distribution, such as the rare long stops of a busy machine.
func judge(turns []turn) outcome {
	ratios := make([]float64, len(turns))
	var builtIn, rival []time.Duration
	for i, t := range turns {
		ratios[i] = float64(max(t.rival, 1)) / float64(max(t.builtIn, 1))
		builtIn, rival = append(builtIn, t.builtIn), append(rival, t.rival)
	}
	slices.Sort(ratios)
	slices.Sort(builtIn)
	slices.Sort(rival)
	v := outcome{atMost: math.Inf(1)}
	if k := boundOf(len(turns)); k > 0 {
		v.atMost = ratios[k-1]
	}
	if n := len(turns); n > 0 {
		v.builtIn, v.rival = builtIn[n/2], rival[n/2]
	}
	return v
}

// boundOf returns the least k that is sure enough: the k-th smallest of n values is less than their
// median with a probability of at most doubt; 0 if there is none. That is the probability that k or
// more of n tosses of a coin are heads.
func boundOf(n int) int {
	probability, tail := math.Exp2(-float64(n)), 0.0 // of exactly k heads, and of more
	for k := n; k > 0; k-- {
		if tail+probability > doubt {
			return (k + 1) % (n + 1)
		}
		tail += probability
		probability *= float64(k) / float64(n-k+1)
	}
	return 0
}

// duel has two ways take turns until the time is over. batch makes calls by one of them and
// returns the time of all. The order of the two changes with each turn, so that neither
// always comes behind the other.
func duel(share time.Duration, batch func(rival bool, calls int) (time.Duration, error)) ([]turn, error) {
	end := time.Now().Add(share)
	calls, err := callsFor(max(share/(2*mostTurns), tuneBatch/4), batch)
	if err != nil {
		return nil, err
	}
	var turns []turn
	for len(turns) < leastTurns || len(turns) < mostTurns && time.Now().Before(end) {
		var took [2]time.Duration
		for i := range took {
			side := (i + len(turns)) % 2
			all, err := batch(side == 1, calls)
			if err != nil {
				return nil, err
			}
			took[side] = all / time.Duration(calls)
		}
		turns = append(turns, turn{took[0], took[1]})
	}
	return turns, nil
}

// mostCalls bounds the calls of a batch.
const mostCalls = 1 << 16

// callsFor returns how many calls by the built-in choice take about so long. It lets both
// ways make a batch first, which opens their connections.
func callsFor(during time.Duration, batch func(rival bool, calls int) (time.Duration, error)) (int, error) {
	if _, err := batch(true, 1); err != nil {
		return 0, err
	}
	for calls := fewCalls; ; calls *= 2 {
		took, err := batch(false, calls)
		if err != nil || took >= during/2 || calls >= mostCalls {
			return calls, err
		}
	}
}
