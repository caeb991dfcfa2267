package main

import (
	"context"
	"slices"
	"time"
)

// A series is a task and its samples.
type series struct {
	h         *harness
	benchmark benchmark
	task      task
	n         int       // operations of a batch
	samples   []float64 // seconds for an operation, by batch
}

// calibrate warms up for a while and finds the number of operations that fill a
// batch.
func (s *series) calibrate(ctx context.Context, during time.Duration) error {
	if s.h.rank != 0 {
		return s.h.follow(ctx, &s.task)
	}
	s.samples = make([]float64, 0, capacity)
	s.n = max(s.task.batch, 1)
	most := maxBatch
	if s.task.most > 0 {
		most = s.task.most
	}
	for end := time.Now().Add(during); ; {
		took, err := s.batch(ctx)
		if err != nil {
			return err
		}
		switch {
		case took < batchTime && s.n < most:
			s.n = min(2*s.n, most)
		case time.Now().After(end):
			return s.end(ctx)
		}
	}
}

// collect takes samples for a while, at least one.
func (s *series) collect(ctx context.Context, during time.Duration) error {
	if s.h.rank != 0 {
		return s.h.follow(ctx, &s.task)
	}
	for end := time.Now().Add(during); ; {
		took, err := s.batch(ctx)
		if err != nil {
			return err
		}
		s.samples = append(s.samples, took.Seconds()/float64(s.n))
		if time.Now().After(end) || len(s.samples) == cap(s.samples) {
			return s.end(ctx)
		}
	}
}

// end has the other ranks stop following.
func (s *series) end(ctx context.Context) error {
	if err := s.h.announce(ctx, 0); err != nil {
		return err
	}
	_, err := s.h.batch(ctx, &s.task, 0)
	return err
}

func (s *series) batch(ctx context.Context) (time.Duration, error) {
	if err := s.h.announce(ctx, s.n); err != nil {
		return 0, err
	}
	return s.h.batch(ctx, &s.task, s.n)
}

// result sums the samples up.
func (s *series) result(size int) result {
	r := result{Benchmark: s.benchmark.name, Provider: s.h.Provider, Mapped: s.h.Mapped, Ranks: s.h.world.Size(), Size: size,
		Unit: s.benchmark.unit.name, taken: s.task.taken}
	if len(s.samples) == 0 {
		return r // not rank 0
	}
	values := make([]float64, len(s.samples))
	for i, v := range s.samples {
		values[i] = s.benchmark.unit.value(v, size)
	}
	slices.Sort(values)
	r.Min, r.Median, r.P99 = values[0], quantile(values, 0.5), quantile(values, 0.99)
	return r
}

// quantile returns the value below which a share of the sorted ones lies.
func quantile(sorted []float64, share float64) float64 {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
