//go:build linux

package board

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/collectives/internal/vector"
)

// measureEnv selects the calls that "measure" measures: kinds by number, sizes in
// bytes.
const measureEnv = "GOPGAS_BOARD_MEASURE"

// BenchmarkProcesses prints medians of processes' calls, in microseconds, beside
// those of a gate alone and of a copy. GOPGAS_BOARD_MEASURE="2 0,2 8,65536" picks
// members, kinds and sizes; two members have a core each.
func BenchmarkProcesses(b *testing.B) {
	what := os.Getenv(measureEnv)
	if what == "" {
		what = "2 0,1,2,7,9,11 8,4096,65536,1048576"
	}
	n, err := strconv.Atoi(strings.Fields(what)[0])
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		fmt.Print(runProcesses(context.Background(), b, n, "measure", measureEnv+"="+what))
	}
}

func numbers(list string) (all []int) {
	for _, s := range strings.Split(list, ",") {
		i, _ := strconv.Atoi(s)
		all = append(all, i)
	}
	return all
}

func (p *process) measure() error {
	if p.n == 2 {
		if err := pin(p.rank); err != nil {
			return err
		}
	}
	fields := strings.Fields(os.Getenv(measureEnv))
	p.say("%-28s %9s %12s %12s\n", "", "bytes", "slices", "in place")
	gate := p.median(8, func(i int) error { return p.gate(uint64(i)) }, nil)
	p.say("%-28s %9s %12.3f\n", "a gate", "", gate)
	for _, k := range numbers(fields[1]) {
		for _, size := range numbers(fields[2]) {
			var us [2]float64
			for placed := range us {
				us[placed] = p.time(kind(k), size, placed == 1)
			}
			p.say("%-28s %9d %12.3f %12.3f\n", kindNames[k], size, us[0], us[1])
		}
	}
	return nil
}

// pin has all threads of this process, and those that they make, run on one core.
func pin(core int) error {
	var cpus unix.CPUSet
	cpus.Set(core)
	threads, err := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		id, _ := strconv.Atoi(thread.Name())
		err = errors.Join(err, unix.SchedSetaffinity(id, &cpus))
	}
	return err
}

func (p *process) say(format string, args ...any) {
	if p.rank == 0 {
		fmt.Printf(format, args...)
	}
}

func (p *process) gate(seq uint64) error {
	if err := p.begin(seq, 0, &Args{}); err != nil {
		return err
	}
	return p.end(p.finish(context.Background(), p.turn))
}

// time returns the median time of a call on vectors, or blocks, of a size.
func (p *process) time(k kind, size int, placed bool) float64 {
	c := call{kind: k, op: operator{elem: 4, combine: vector.For[float32](vector.Sum)}, elems: size / 4}
	r := &rig{boards: make([]*Board, p.n), arenas: make([][]byte, p.n)}
	r.arenas[p.rank] = p.arena
	if placed {
		c.placed = -1
	}
	a := c.args(r, p.rank)
	clear(a.Recv)
	clear(a.Send)
	do := func(i int) error { return c.make(context.Background(), p.Board, uint64(i), a) }
	input := a.Send
	if k == broadcast && p.rank == 0 {
		input = a.Recv
	}
	return p.median(size, do, func() {
		for i := 0; i+8 <= len(input); i += 64 {
			input[i]++
		}
	})
}

// median times batches of small calls, and large calls one by one after a gate,
// their input rewritten before it.
func (p *process) median(size int, do func(i int) error, rewrite func()) float64 {
	batch, rounds := 200, 200
	if size > 2048 {
		batch, rounds = 1, max(21, min(2000, 1<<29/size/p.n))
	}
	var us []float64
	for i := range rounds {
		if batch == 1 {
			rewrite()
			if err := p.gate(uint64(i)); err != nil {
				panic(err)
			}
		}
		start := time.Now()
		for j := range batch {
			if err := do(i*batch + j); err != nil {
				panic(err)
			}
		}
		us = append(us, float64(time.Since(start).Nanoseconds())/1e3/float64(batch))
	}
	slices.Sort(us)
	return p.mean(us[len(us)/2])
}

// mean is that of all members, at member 0.
func (p *process) mean(mine float64) float64 {
	x := make([]byte, 8)
	binary.NativeEndian.PutUint64(x, math.Float64bits(mine))
	a := &Args{Elem: 8, Send: x, Recv: x, Combine: vector.For[float64](vector.Sum)}
	if err := p.Reduce(context.Background(), 0, 0, a); err != nil {
		panic(err)
	}
	return math.Float64frombits(binary.NativeEndian.Uint64(x)) / float64(p.n)
}
