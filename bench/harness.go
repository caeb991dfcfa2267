//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A harness runs tasks at all ranks: rank 0 announces the number of operations of
// each batch, and keeps the time.
type harness struct {
	way
	knobs
	world   *runtime.Team
	rank    int
	control *window.Window[uint64]
	batches uint64 // that rank 0 has announced
	warmed  bool   // rank 0 has warmed up for firstWarmUp
	start   start
	paces   map[work]int // units of work: see overlap.go
}

// A way describes the path from rank 0 to the target.
type way struct {
	Provider string
	Mapped   bool // by loads and stores
	MaxFMA   int  // largest copy into the queue, 0 without one
}

// target is the rank of rank 0's operations.
const target = 1

// newHarness prepares a rank for all benchmarks: it allocates the control window, and finds out
// whether the target is mapped. All ranks call it.
func newHarness(ctx context.Context, job *runtime.Job, k knobs) (*harness, error) {
	k.window, k.buffers = max(k.window, 1), max(k.buffers, 1)
	h := &harness{knobs: k, world: job.World(), rank: job.World().Rank(), paces: map[work]int{}}
	var err error
	if h.control, err = window.Allocate[uint64](ctx, h.world, 1, window.WithName("control")); err != nil {
		return nil, err
	}
	return h, h.look(ctx)
}

// look finds the way from rank 0 to the target and tells all ranks. Kind:
// collective.
func (h *harness) look(ctx context.Context) error {
	team := team.Of(h.world)
	if h.rank == 0 {
		_, err := h.control.Shared(ctx, target)
		if err != nil && !errors.Is(err, window.ErrNotShared) {
			return err
		}
		h.Mapped = err == nil
		peer, err := team.Peer(ctx, team.Members[target])
		if err != nil {
			return err
		}
		h.Provider, h.MaxFMA = peer.Provider(), peer.MaxFMA()
	}
	mine, err := json.Marshal(h.way)
	if err != nil {
		return err
	}
	all, err := h.world.Exchange(ctx, mine)
	if err != nil {
		return err
	}
	return json.Unmarshal(all[0], &h.way)
}

func (h *harness) close(ctx context.Context) error { return h.control.Free(ctx) }

// Lengths of batches and samples.
const (
	batchTime = 100 * time.Microsecond
	maxBatch  = 1 << 20
	turns     = 8       // turns that each of several compared tasks gets
	warmUp    = 1. / 8  // of a task's time
	capacity  = 1 << 15 // samples of a task
)

// compare measures a group at one size, all in turns. It returns results at rank
// 0 only. It leaves out a task that cannot run here.
func (h *harness) compare(ctx context.Context, group []benchmark, size int, each time.Duration) ([]result, error) {
	var runs []*series
	for _, b := range group {
		t, err := b.setup(ctx, h, size)
		if errors.Is(err, errSkip) {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, newSeries(h, b, t))
	}
	for _, s := range runs {
		if err := s.calibrate(ctx, time.Duration(float64(each)*warmUp)); err != nil {
			return nil, err
		}
	}
	for range turns {
		for _, s := range runs {
			if err := s.collect(ctx, each/turns); err != nil {
				return nil, err
			}
		}
	}
	var results []result
	for _, s := range runs {
		results = append(results, s.result(size))
		if s.task.free != nil {
			if err := s.task.free(ctx); err != nil {
				return nil, err
			}
		}
	}
	rate(group, results)
	return results, nil
}

// errSkip: a task makes no sense for these ranks.
var errSkip = errors.New("does not apply")

// A lap is the time of one batch.
type lap struct {
	took  time.Duration
	ranks []time.Duration // the time of each rank, if all ranks do the work
}

// batch runs the n announced operations at all ranks, and returns their time at rank
// 0. It records the time of each operation in tails, unless that is nil. Kind:
// collective.
func (h *harness) batch(ctx context.Context, t *task, n int, tails *hdrhistogram.Histogram) (lap, error) {
	if t.prepare != nil {
		t.prepare()
	}
	// No rank starts, and rank 0 announces nothing new, before all ranks have
	// come.
	if err := h.world.Barrier(ctx); err != nil {
		return lap{}, err
	}
	run := t.run
	if h.tails {
		run = oneByOne(t, tails)
	}
	began := clock()
	err := run(ctx, n)
	ended := clock()
	if err != nil || !t.together {
		return lap{took: ended - began}, err
	}
	return h.span(ctx, began, ended)
}

// span returns, at rank 0, the time from the first begin of a rank to the last end.
// The barrier keeps its work out of the time of ranks that have not ended.
func (h *harness) span(ctx context.Context, began, ended time.Duration) (lap, error) {
	if err := h.world.Barrier(ctx); err != nil {
		return lap{}, err
	}
	var all []time.Duration // begin and end of each rank
	if h.rank == 0 {
		all = make([]time.Duration, 2*h.world.Size())
	}
	if err := collectives.Gather(ctx, h.world, 0, []time.Duration{began, ended}, all); err != nil || h.rank != 0 {
		return lap{}, err
	}
	var l lap
	first, last := began, ended
	for i := 0; i < len(all); i += 2 {
		first, last = min(first, all[i]), max(last, all[i+1])
		l.ranks = append(l.ranks, all[i+1]-all[i])
	}
	l.took = last - first
	return l, nil
}

// clock returns the same time in all processes of a machine; benchmarks run on
// one.
func clock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // there is no Linux without it
	}
	return time.Duration(now.Nano())
}

// announce sends all other ranks the number of operations of the next batch; 0
// ends the series.
func (h *harness) announce(ctx context.Context, n int) error {
	count := []uint64{uint64(n)}
	for rank := 1; rank < h.world.Size(); rank++ {
		if err := h.control.PutNotify(ctx, rank, 0, count, window.Signal{Add: true, Value: 1}); err != nil {
			return err
		}
	}
	return nil
}

// follow makes the batches that rank 0 announces, until it announces 0.
func (h *harness) follow(ctx context.Context, t *task) error {
	for {
		h.batches++
		told := window.Until{Slots: []int{0}, Condition: window.AtLeast, Value: h.batches}
		if _, _, err := h.control.WaitNotify(ctx, told); err != nil {
			return err
		}
		n := int(h.control.Local()[0])
		if _, err := h.batch(ctx, t, n, nil); n == 0 || err != nil {
			return err
		}
	}
}
