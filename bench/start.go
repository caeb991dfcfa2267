//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// osuInit is OSU's program for the time of a start, which has a layout of its own.
const osuInit = "osu_init"

// startBenchmarks returns the benchmarks of the time and memory that a start takes.
func startBenchmarks() []benchmark {
	return []benchmark{
		{name: "init", osu: osuInit, about: "from main to the job's body, each rank", unit: micros(), setup: initTime},
		{name: "memory", about: "of a rank when the job has begun, its share of shared pages included", unit: kibibytes(), setup: startMemory},
		{name: "memory_peer", about: "more of a rank for each peer that it has put to", unit: kibibytes(), setup: peerMemory},
	}
}

// A start holds what each rank measured before it did anything in the job.
type start struct {
	took   []float64 // seconds
	memory []float64 // bytes
}

// reached measures this rank's start, and hands it to all ranks. Kind: collective.
func (o *options) reached(ctx context.Context, job *runtime.Job) (start, error) {
	took := time.Since(o.began)
	if o.began.IsZero() {
		took = time.Nanosecond // ranks of a test share the process
	}
	memory, err := residentMemory()
	if err != nil {
		return start{}, err
	}
	all, err := exchangeNumbers(ctx, job.World(), took.Seconds(), memory)
	if err != nil {
		return start{}, err
	}
	var s start
	for i := 0; i < len(all); i += 2 {
		s.took, s.memory = append(s.took, all[i]), append(s.memory, all[i+1])
	}
	return s, nil
}

// exchangeNumbers returns the numbers of all ranks, in their order. Kind: collective.
func exchangeNumbers(ctx context.Context, t *runtime.Team, mine ...float64) (all []float64, err error) {
	parts, err := t.Exchange(ctx, element.Bytes(mine))
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		numbers := make([]float64, len(mine))
		copy(element.Bytes(numbers), p)
		all = append(all, numbers...)
	}
	return all, nil
}

func initTime(_ context.Context, h *harness, _ int) (task, error) {
	return task{measured: h.start.took}, nil
}

func startMemory(_ context.Context, h *harness, _ int) (task, error) {
	return task{measured: h.start.memory}, nil
}

// peerMemory puts to all peers and divides the growth since the start by their number. The
// windows of this program are a part of it.
func peerMemory(ctx context.Context, h *harness, _ int) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, h.world.Size())
	if err != nil {
		return task{}, err
	}
	for rank := range h.world.Size() {
		if err := w.PutValue(ctx, rank, h.world.Rank(), 1); err != nil {
			return task{}, err
		}
	}
	if err := w.Fence(ctx); err != nil {
		return task{}, err
	}
	now, err := residentMemory()
	if err != nil {
		return task{}, err
	}
	// Memory that the process gave back since may outweigh that of a few peers.
	growth := max(now-h.start.memory[h.rank], 1)
	all, err := exchangeNumbers(ctx, h.world, growth/float64(h.world.Size()-1))
	return task{measured: all}, errors.Join(err, w.Free(ctx))
}

// residentMemory returns the bytes of memory that this process has, with its share of pages
// that it shares.
func residentMemory() (float64, error) {
	goruntime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0, err
	}
	return proportional(text)
}

// proportional finds the line Pss in the text of smaps_rollup, in bytes.
func proportional(text []byte) (float64, error) {
	for line := range bytes.Lines(text) {
		var kib float64
		if n, _ := fmt.Sscanf(string(line), "Pss: %f kB", &kib); n == 1 {
			return kib * 1024, nil
		}
	}
	return 0, errors.New("/proc/self/smaps_rollup has no line Pss")
}
