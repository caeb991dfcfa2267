//go:build linux

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// A trial compares an algorithm with the built-in choice.
type trial struct {
	Collective    string  `json:"collective"`
	Bytes         int     `json:"bytes"` // of the longest buffer
	Algorithm     string  `json:"algorithm"`
	Micros        float64 `json:"micros"`
	Instead       string  `json:"instead"` // the built-in choice
	InsteadMicros float64 `json:"insteadMicros"`
	Faster        bool    `json:"faster"` // in every manner
}

// A rival is an algorithm that seems faster for a collective and size.
type rival struct {
	call      tuneCall
	bytes     int
	algorithm string
}

// readRival parses the text of a rival: collective:bytes:algorithm.
func readRival(text string) (rival, error) {
	part := strings.Split(text, ":")
	if len(part) != 3 {
		return rival{}, fmt.Errorf("--%s %q: want collective:bytes:algorithm", checkFlag, text)
	}
	bytes, err := strconv.Atoi(part[1])
	if err != nil || bytes < tuneElement || bytes > tuneMost {
		return rival{}, fmt.Errorf("--%s %q: want from %d to %d bytes", checkFlag, text, tuneElement, tuneMost)
	}
	for _, c := range tuneCalls() {
		if c.name == part[0] {
			return rival{c, bytes, part[2]}, nil
		}
	}
	return rival{}, fmt.Errorf("--%s %q: there is no such collective", checkFlag, text)
}

// compareAll runs at each rank: it compares each rival with the built-in choice.
func (o *tuneOptions) compareAll(ctx context.Context, job *runtime.Job) error {
	t, err := o.newTuner(ctx, job)
	if err != nil {
		return err
	}
	end := time.Now().Add(o.time)
	for i, text := range o.rivals {
		r, err := readRival(text)
		if err != nil {
			return err
		}
		result, err := t.check(ctx, r, time.Until(end)/time.Duration(len(o.rivals)-i))
		if err != nil {
			return err
		}
		if err := t.out.Encode(tuneLine{Trial: &result, Done: float64(i+1) / float64(len(o.rivals))}); err != nil {
			return err
		}
	}
	return t.world.Barrier(ctx)
}

// check compares a rival with the built-in choice in all manners, until it is not faster in
// one of them.
func (t *tuner) check(ctx context.Context, r rival, share time.Duration) (trial, error) {
	result := trial{Collective: r.call.name, Bytes: r.bytes, Algorithm: r.algorithm}
	n := t.world.Size()
	count := max(1, r.bytes/tuneElement/r.call.longest(n))
	room := count * r.call.longest(n)
	arena, err := t.allocate(room)
	if err != nil {
		return result, err
	}
	manners := mannersOf(r.call, arena, slicesOf(room))
	for i, m := range manners {
		v, instead, err := t.compareIn(ctx, m, r.algorithm, count, share/time.Duration(len(manners)))
		if err != nil {
			return result, err
		}
		if i == 0 {
			result.Instead, result.Micros, result.InsteadMicros = instead, micros(v.rival), micros(v.builtIn)
		}
		if result.Faster = v.faster(); !result.Faster {
			break
		}
	}
	if err := t.world.Barrier(ctx); err != nil { // other ranks may still read
		return result, err
	}
	return result, arena.free()
}

// A manner is a way in which programs make a call.
type manner struct {
	call  tuneCall
	room  *tuneRoom
	apart bool
}

// mannersOf lists the manners on which no choice depends. An algorithm must be faster in all
// of them: in the heap and in slices, in a stream of calls and alone, and by an operator
// that Go code applies.
func mannersOf(c tuneCall, arena, plain *tuneRoom) []manner {
	list := []manner{{c, arena, false}, {c, plain, false}, {c, arena, true}}
	if !c.op {
		return list
	}
	plus := collectives.NewOp("plus", true, func(a, b float64) float64 { return a + b })
	for _, own := range callsBy(plus) {
		if own.name == c.name {
			list = append(list, manner{own, plain, false})
		}
	}
	return list
}

// compareIn compares a rival with the built-in choice in one manner. All ranks get the same
// outcome. A rival that cannot do the call in this manner is not used for it either: it
// counts as faster.
func (t *tuner) compareIn(ctx context.Context, m manner, algorithm string, count int, share time.Duration) (v outcome, builtIn string, err error) {
	if builtIn, err = m.call.call(t.world, m.room, count).Choice(t.world); err != nil {
		return v, "", err
	}
	var sides []*candidate
	for _, opts := range [][]collectives.Option{nil, {collectives.WithAlgorithm(algorithm)}} {
		plan, err := t.plan(ctx, m.call.call(t.world, m.room, count, opts...))
		if err != nil || plan == nil {
			return v, builtIn, err // without a plan, the table's user chooses as without it
		}
		sides = append(sides, &candidate{plan: plan, count: count * m.call.longest(t.world.Size()), apart: m.apart})
	}
	if t.world.Rank() != 0 {
		if err := t.follow(ctx, sides, m.room); err != nil {
			return v, builtIn, err
		}
	} else {
		turns, err := duel(share, func(rival bool, calls int) (time.Duration, error) {
			side := sides[0]
			if rival {
				side = sides[1]
			}
			side.calls = calls
			return t.batch(ctx, sides, side, m.room)
		})
		if err == nil {
			err = t.endTurns(ctx)
		}
		if err != nil {
			return v, builtIn, err
		}
		v = judge(turns)
	}
	return t.agree(ctx, v, builtIn)
}

// agree gives all ranks the outcome of rank 0.
func (t *tuner) agree(ctx context.Context, v outcome, builtIn string) (outcome, string, error) {
	at := []float64{v.atMost, float64(v.builtIn), float64(v.rival)}
	err := collectives.Broadcast(ctx, t.world, 0, at)
	return outcome{atMost: at[0], builtIn: time.Duration(at[1]), rival: time.Duration(at[2])}, builtIn, err
}
