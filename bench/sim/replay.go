package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/collectives/loggp"
)

const (
	// mostRanks bounds the ranks of replays in which a rank's messages or memory grow with
	// the number of ranks.
	mostRanks = 4096
)

// A group holds the replays of one collective among so many ranks.
type group struct {
	Collective string
	Ranks      int
	PerHost    int
	Curves     []curve
	Steps      []step // from size to size
	Left       []string
}

// A curve holds the times of one algorithm.
type curve struct {
	Algorithm string
	Sizes     []int
	Times     []time.Duration
}

// A step is the choice at one size.
type step struct {
	Size            int
	Best, Rule      string
	BestIn, RuleIn  time.Duration // RuleIn is 0 if the rules' algorithm was left out
	BestMessages    int64
	BestMostByARank int
}

// replay replays all collectives.
func (o *options) replay(ctx context.Context, c *constants, news io.Writer) ([]group, error) {
	var groups []group
	for _, name := range o.collectives {
		for _, ranks := range o.ranks {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			began := time.Now()
			g, err := o.group(ctx, c.machine(ranks, o.perHost), name)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(news, "sim: %s, %d ranks: %d algorithms in %v\n", name, ranks, len(g.Curves), time.Since(began).Round(time.Millisecond))
			if len(g.Curves) > 0 {
				groups = append(groups, g)
			}
		}
	}
	return groups, nil
}

// group replays one collective by all algorithms that are not too large.
func (o *options) group(ctx context.Context, m *loggp.Machine, collective string) (group, error) {
	g := group{Collective: collective, Ranks: m.Ranks, PerHost: m.PerHost}
	steps := map[int]*step{}
	for _, algorithm := range loggp.Algorithms(m, collective) {
		if !o.small(m, collective, algorithm) {
			g.Left = append(g.Left, algorithm)
			continue
		}
		c := curve{Algorithm: algorithm}
		for _, size := range o.sizes {
			bytes := longest(m, collective, size)
			if bytes > loggp.MostBytes || ctx.Err() != nil {
				break
			}
			r, err := loggp.Run(m, loggp.Call{Collective: collective, Algorithm: algorithm, Bytes: bytes}, nil)
			if errors.Is(err, loggp.ErrMachine) { // it needs too much memory for this size
				break
			}
			if err != nil {
				return g, err
			}
			c.Sizes, c.Times = append(c.Sizes, size), append(c.Times, r.Time)
			if steps[size] == nil {
				steps[size] = &step{Size: size, BestIn: math.MaxInt64}
			}
			if err := steps[size].add(m, collective, bytes, algorithm, &r); err != nil {
				return g, err
			}
		}
		g.Curves = append(g.Curves, c)
	}
	for _, size := range o.sizes {
		if s := steps[size]; s != nil {
			g.Steps = append(g.Steps, *s)
		}
	}
	return g, nil
}

// add takes one replay at the size of a step.
func (s *step) add(m *loggp.Machine, collective string, bytes int, algorithm string, r *loggp.Result) (err error) {
	if r.Time < s.BestIn {
		s.Best, s.BestIn, s.BestMessages, s.BestMostByARank = algorithm, r.Time, r.Messages, r.MostMessages
	}
	s.Rule, err = collectives.ChoiceAmong(collectives.Members{Ranks: m.Ranks, PerHost: m.PerHost}, collective, bytes)
	if s.Rule == algorithm {
		s.RuleIn = r.Time
	}
	return err
}

// partOf returns the rules' algorithm for a part of a two-level call.
func partOf(m *loggp.Machine, collective string, bytes int, among bool) string {
	members := collectives.Members{Ranks: m.PerHost, PerHost: m.PerHost}
	if among {
		members = collectives.Members{Ranks: (m.Ranks + m.PerHost - 1) / m.PerHost, PerHost: 1}
	}
	name, _ := collectives.ChoiceAmong(members, collective, bytes) // "" stands for one that does any call
	return name
}

// longest returns the length of a call's longest buffer. size is that of a vector, or of one
// rank's block.
func longest(m *loggp.Machine, collective string, size int) int {
	if slices.Contains([]string{"gather", "scatter", "all-gather", "reduce-scatter", "all-to-all"}, collective) {
		return size * m.Ranks
	}
	return size
}

// The numbers of ranks of two short replays, from which small concludes.
const fewer, more = 64, 128

// small reports whether a replay is not too large: by messages in all, and by the messages and
// memory of one rank if there are many ranks. Two short replays show how they grow.
func (o *options) small(m *loggp.Machine, collective, algorithm string) bool {
	if m.Ranks <= more {
		return true
	}
	var r [2]loggp.Result
	var own [2]int // bytes of one rank's buffers
	for i, ranks := range []int{fewer, more} {
		few := *m
		few.Ranks = ranks
		few.PerHost = min(m.PerHost, ranks)
		bytes := longest(&few, collective, 8)
		var err error
		if r[i], err = loggp.Run(&few, loggp.Call{Collective: collective, Algorithm: algorithm, Bytes: bytes}, nil); err != nil {
			return false
		}
		own[i] = bytes + r[i].MostScratch
	}
	growth := math.Log2(float64(r[1].Messages) / float64(max(r[0].Messages, 1)))
	messages := float64(r[1].Messages) * math.Pow(float64(m.Ranks)/more, growth)
	logarithmic := r[1].MostMessages <= r[0].MostMessages+2 && own[1] <= own[0]+16
	return messages <= float64(o.most) && (logarithmic || m.Ranks <= mostRanks)
}
