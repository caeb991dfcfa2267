//go:build linux

package main

import (
	"context"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A series is a task and its samples.
type series struct {
	h         *harness
	benchmark benchmark
	task      task
	n         int       // operations of a batch
	samples   []float64 // seconds for an operation, by batch
	ops       int       // operations in samples
	ended     []int     // samples at the end of each turn
	ranks     []float64 // seconds of each rank in all samples, if all ranks work
	tails     *hdrhistogram.Histogram
}

// newSeries returns a series without samples, or with those that setup took.
func newSeries(h *harness, b benchmark, t task) *series {
	s := &series{h: h, benchmark: b, task: t, n: max(t.batch, 1)}
	if h.rank != 0 {
		return s
	}
	s.samples = make([]float64, 0, max(capacity, len(t.measured)))
	if t.run == nil {
		s.samples, s.ops = append(s.samples, t.measured...), len(t.measured)
	}
	if h.knobs.tails {
		s.tails = newTails()
	}
	return s
}

// firstWarmUp is the least time for which a job warms up. Its first milliseconds are slower than
// all later ones: fetch_add_latency over tcp takes 11 us in the first 5 ms, and 8 us from then on.
const firstWarmUp = 20 * time.Millisecond

// calibrate warms up for a while and finds the number of operations that fill a
// batch.
func (s *series) calibrate(ctx context.Context, during time.Duration) error {
	if s.task.run == nil {
		return nil
	}
	if s.h.rank != 0 {
		return s.h.follow(ctx, &s.task)
	}
	warm := s.h.warm
	if warm == 0 {
		warm = s.h.iterations / 10
	}
	warm *= max(s.task.each, 1)
	if !s.h.warmed {
		s.h.warmed, during = true, max(during, firstWarmUp)
	}
	end := time.Now().Add(during)
	for done := 0; ; {
		l, err := s.batch(ctx, nil)
		if err != nil {
			return err
		}
		done += s.n
		switch {
		case s.lengthen(l.took):
		case s.h.iterations > 0 && done >= warm, s.h.iterations == 0 && time.Now().After(end):
			return s.end(ctx)
		}
	}
}

// lengthen doubles the batch if it was too short for the clock, and reports so.
func (s *series) lengthen(took time.Duration) bool {
	most := maxBatch
	if s.task.most > 0 {
		most = s.task.most
	}
	if took >= batchTime || s.n >= most {
		return false
	}
	s.n = min(2*s.n, most)
	return true
}

// collect takes the samples of one turn: for a while, or a share of the iterations. It
// takes one at least.
func (s *series) collect(ctx context.Context, during time.Duration) error {
	if s.task.run == nil {
		return nil
	}
	if s.h.rank != 0 {
		return s.h.follow(ctx, &s.task)
	}
	turn := len(s.ended) + 1
	wanted := s.h.iterations * max(s.task.each, 1) * turn / turns
	for end := time.Now().Add(during); ; {
		l, err := s.batch(ctx, s.tails)
		if err != nil {
			return err
		}
		if !s.take(l) {
			continue
		}
		enough := time.Now().After(end)
		if s.h.iterations > 0 {
			enough = s.ops >= wanted
		}
		if enough || len(s.samples) == cap(s.samples) {
			s.ended = append(s.ended, len(s.samples))
			return s.end(ctx)
		}
	}
}

// take adds the sample of a batch. If the batch took less than half of its time, a
// disturbance cut calibrate short: take drops all samples, lengthens the batch and returns
// false.
func (s *series) take(l lap) bool {
	if l.took < batchTime/2 && s.lengthen(l.took) {
		s.samples, s.ops, s.ranks = s.samples[:0], 0, nil
		for i := range s.ended {
			s.ended[i] = 0
		}
		if s.tails != nil {
			s.tails.Reset()
		}
		return false
	}
	s.samples = append(s.samples, l.took.Seconds()/float64(s.n*max(s.task.senders, 1)))
	s.ops += s.n
	if s.ranks == nil {
		s.ranks = make([]float64, len(l.ranks))
	}
	for i, took := range l.ranks {
		s.ranks[i] += took.Seconds()
	}
	return true
}

// end has the other ranks stop following.
func (s *series) end(ctx context.Context) error {
	if err := s.h.announce(ctx, 0); err != nil {
		return err
	}
	_, err := s.h.batch(ctx, &s.task, 0, nil)
	return err
}

// batch has all ranks run one batch, and returns how long it took. Rank 0 calls it.
func (s *series) batch(ctx context.Context, tails *hdrhistogram.Histogram) (lap, error) {
	if err := s.h.announce(ctx, s.n); err != nil {
		return lap{}, err
	}
	return s.h.batch(ctx, &s.task, s.n, tails)
}

// result sums the samples up.
func (s *series) result(size int) result {
	r := result{Benchmark: s.benchmark.name, Provider: s.h.Provider, Mapped: s.h.Mapped, Ranks: s.h.world.Size(), Size: size,
		Unit: s.benchmark.unit.name, benchmark: &s.benchmark, taken: s.task.taken}
	if len(s.samples) == 0 {
		return r // not rank 0
	}
	value := func(seconds float64) float64 { return s.benchmark.unit.value(seconds, size) }
	total, values := 0., make([]float64, len(s.samples))
	for i, v := range s.samples {
		values[i] = value(v)
		total += v
	}
	from := 0
	for _, to := range s.ended {
		if to > from {
			r.turns = append(r.turns, median(values[from:to]))
		}
		from = to
	}
	slices.Sort(values)
	r.Min, r.Median, r.P99 = values[0], quantile(values, 0.5), quantile(values, 0.99)
	r.Mean, r.Operations = value(total/float64(len(values))), s.ops
	r.Tails = tailsOf(s.tails, s.benchmark.unit, size)
	s.rankTimes(&r, value)
	return r
}

// rankTimes sets the means over all ranks, of the fastest and of the slowest.
func (s *series) rankTimes(r *result, value func(seconds float64) float64) {
	r.Average, r.Fastest, r.Slowest = r.Mean, r.Mean, r.Mean
	if len(s.ranks) == 0 {
		return
	}
	sum := 0.
	for _, t := range s.ranks {
		sum += t
	}
	calls := float64(s.ops)
	r.Average = value(sum / float64(len(s.ranks)) / calls)
	r.Fastest, r.Slowest = value(slices.Min(s.ranks)/calls), value(slices.Max(s.ranks)/calls)
}

func median(values []float64) float64 { return quantile(slices.Sorted(slices.Values(values)), 0.5) }

// quantile returns the value below which a share of the sorted ones lies.
func quantile(sorted []float64, share float64) float64 {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
