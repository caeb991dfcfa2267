package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A benchmark is one thing to measure.
type benchmark struct {
	name  string
	group string // another name for all of a group, as "switch"
	about string
	sized bool // runs at every -size
	unit  unit
	setup func(ctx context.Context, h *harness, size int) (task, error)
}

// base is the name under which benchmarks are compared with each other.
func (b *benchmark) base() string {
	if b.group != "" {
		return b.group
	}
	return strings.TrimSuffix(b.name, "_floor")
}

// A task is a benchmark set up at all ranks.
type task struct {
	// prepare runs at every rank before each batch, untimed. It may be nil.
	prepare func()
	// run makes n operations, at all ranks that take part; at others it does
	// nothing.
	run func(ctx context.Context, n int) error
	// free gives back what setup took. It is collective and may be nil.
	free func(ctx context.Context) error
	// batch is the least number of operations that makes sense, if not 1.
	batch int
	// taken: a window would choose this way.
	taken bool
}

// A unit turns seconds for an operation on size bytes into a result.
type unit struct {
	name   string
	value  func(seconds float64, size int) float64
	higher bool // is better
}

func micros() unit {
	return unit{name: "us", value: func(s float64, _ int) float64 { return s * 1e6 }}
}

// oneWay is for operations that go there and back.
func oneWay() unit {
	return unit{name: "us", value: func(s float64, _ int) float64 { return s / 2 * 1e6 }}
}

func megabytes() unit {
	return unit{name: "MB/s", value: func(s float64, size int) float64 { return float64(size) / s / 1e6 }, higher: true}
}

// benchmarks returns all there are, in the order of reports.
func benchmarks() []benchmark {
	return []benchmark{
		{name: "put_latency", about: "put and flush", sized: true, unit: micros(), setup: putLatency},
		{name: "put_latency_floor", about: "copy and full barrier, or a round trip of a raw socket", sized: true, unit: micros(), setup: putLatencyFloor},
		{name: "put_issue", about: "put without flush", sized: true, unit: micros(), setup: putIssue},
		{name: "put_issue_floor", about: "copy", sized: true, unit: micros(), setup: putIssueFloor},
		{name: "get_latency", about: "get", sized: true, unit: micros(), setup: getLatency},
		{name: "get_latency_floor", about: "copy, or a round trip of a raw socket", sized: true, unit: micros(), setup: getLatencyFloor},
		{name: "fetch_add_latency", about: "FetchAdd of 8 bytes", unit: micros(), setup: fetchAddLatency},
		{name: "fetch_add_latency_floor", about: "atomic.AddUint64, or a round trip of a raw socket", unit: micros(), setup: fetchAddLatencyFloor},
		{name: "cas_latency", about: "CompareSwap of 8 bytes", unit: micros(), setup: casLatency},
		{name: "cas_latency_floor", about: "atomic.CompareAndSwapUint64, or a round trip of a raw socket", unit: micros(), setup: casLatencyFloor},
		{name: "put_bw", about: "64 puts under way, then flush", sized: true, unit: megabytes(), setup: putBandwidth},
		{name: "put_bw_floor", about: "memcpy, or a raw socket's stream", sized: true, unit: megabytes(), setup: putBandwidthFloor},
		{name: "get_bw", about: "64 gets under way", sized: true, unit: megabytes(), setup: getBandwidth},
		{name: "get_bw_floor", about: "memcpy, or a raw socket's stream", sized: true, unit: megabytes(), setup: getBandwidthFloor},
		{name: "put_notify_latency", about: "PutNotify and WaitNotify, ping-pong, one way", sized: true, unit: oneWay(), setup: notifyLatency},
		{name: "put_notify_latency_floor", about: "the same on mapped words, or with a raw socket", sized: true, unit: oneWay(), setup: notifyLatencyFloor},
		{name: "barrier", about: "Barrier of all ranks", unit: micros(), setup: barrierLatency},
		{name: "fence", about: "Fence of all ranks", unit: micros(), setup: fenceLatency},
		{name: "lock_latency", about: "exclusive lock, put of 8 bytes, unlock; nobody else there", unit: micros(), setup: lockLatency},
		{name: "switch_mapped", group: "switch", about: "write and flush by mapping", sized: true, unit: micros(), setup: switchMapped},
		{name: "switch_fma", group: "switch", about: "write and flush, copied when posted", sized: true, unit: micros(), setup: switchFMA},
		{name: "switch_bulk", group: "switch", about: "write and flush, from the caller's slice", sized: true, unit: micros(), setup: switchBulk},
	}
}

func printList(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range benchmarks() {
		fmt.Fprintf(table, "%s\t%s\n", b.name, b.about)
	}
	table.Flush() //nolint:errcheck // nobody to tell
}
