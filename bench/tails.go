//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tails are percentiles of single operations, in the result's unit.
type tails struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99.9"`
	Max  float64 `json:"max"`
}

// Bounds of a histogram, in nanoseconds, and its digits.
const (
	longestOperation = int64(time.Hour)
	tailDigits       = 3
)

func newTails() *hdrhistogram.Histogram { return hdrhistogram.New(1, longestOperation, tailDigits) }

// oneByOne makes n operations, one iteration at a time, and records the mean time of the
// operations of each. Reading the clock takes a part of it. All ranks make them so: a batch
// has the same order everywhere.
func oneByOne(t *task, into *hdrhistogram.Histogram) func(ctx context.Context, n int) error {
	each := max(t.each, 1)
	return func(ctx context.Context, n int) error {
		last := clock()
		for ; n > 0; n -= each {
			if err := t.run(ctx, min(n, each)); err != nil {
				return err
			}
			now := clock()
			if into != nil {
				into.RecordValue(int64(now-last) / int64(min(n, each))) //nolint:errcheck // a longer one than an hour is no operation
			}
			last = now
		}
		return nil
	}
}

// tailsOf returns the percentiles of a histogram of nanoseconds in a unit; nil if it is
// empty. The longest time has the lowest rate.
func tailsOf(h *hdrhistogram.Histogram, u unit, size int) *tails {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	value := func(ns int64) float64 { return u.value(time.Duration(max(ns, 1)).Seconds(), size) }
	at := func(percent float64) float64 {
		if u.higher {
			percent = 100 - percent
		}
		return value(h.ValueAtPercentile(percent))
	}
	most := value(h.Max())
	if u.higher {
		most = value(h.Min())
	}
	return &tails{at(50), at(90), at(99), at(99.9), most}
}

// heading names the columns of String.
func (t *tails) heading() string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%18s%18s%18s%18s%18s", "P50 Tail", "P90 Tail", "P99 Tail", "P99.9 Tail", "Max")
}

// String returns columns of a table, none for nil.
func (t *tails) String() string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("%18.4f%18.4f%18.4f%18.4f%18.4f", t.P50, t.P90, t.P99, t.P999, t.Max)
}
