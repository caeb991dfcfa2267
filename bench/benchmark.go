//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gopgas/gopgas/rpipe"
)

// A benchmark is one operation to measure.
type benchmark struct {
	name  string
	osu   string // name of OSU's program that measures the same; empty without one
	group string // common name of a group, such as "switch"
	syncs string // values of -s that it knows, the first its own; empty without -s
	about string
	sized bool // runs at every -size
	bytes int  // of one operation, if it is not sized and they are more than 8
	unit  unit
	// messages: OSU's layout has a column with messages a second.
	messages bool
	setup    setup
}

// A setup makes a benchmark's task at one rank, for operations on size bytes.
type setup func(ctx context.Context, h *harness, size int) (task, error)

// base is the name that benchmarks share which are compared with each other.
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
	// run makes n operations at the ranks that take part, and does nothing at the
	// rest.
	run func(ctx context.Context, n int) error
	// free gives back the memory and pipes of setup. It is collective and may be
	// nil.
	free func(ctx context.Context) error
	// batch is the least number of operations that makes sense, if not 1; most is
	// the largest, if not 0.
	batch, most int
	// each is the number of operations of one iteration (-i), if not 1.
	each int
	// senders is the number of ranks that each make the operations and count together, if
	// not 1.
	senders int
	// together: all ranks do the work, and the time lasts from the first one's begin to
	// the last one's end. If false, the time is rank 0's.
	together bool
	// measured holds samples that setup took, in seconds or in the unit's own measure.
	// Such a task has no run.
	measured []float64
	// taken: a window would choose this way.
	taken bool
}

// A unit turns seconds for an operation on size bytes into a result.
type unit struct {
	name   string
	value  func(seconds float64, size int) float64
	higher bool // more is better
}

func micros() unit {
	return unit{name: "us", value: func(s float64, _ int) float64 { return s * 1e6 }}
}

// oneWay is the unit of operations that go there and back.
func oneWay() unit {
	return unit{name: "us", value: func(s float64, _ int) float64 { return s / 2 * 1e6 }}
}

func megabytes() unit {
	return unit{name: "MB/s", value: func(s float64, size int) float64 { return float64(size) / s / 1e6 }, higher: true}
}

// millions is the unit of rates: millions of operations a second.
func millions() unit {
	return unit{name: "M/s", value: func(s float64, _ int) float64 { return 1 / s / 1e6 }, higher: true}
}

// benchmarks returns all benchmarks, in the order of reports.
func benchmarks() []benchmark {
	return slices.Concat(windowBenchmarks(), manyBenchmarks(), randomBenchmarks(), pipeBenchmarks(), conveyorBenchmarks[[8]byte](), conveyorBenchmarks[[16]byte](),
		conveyorBenchmarks[[64]byte](), pollBenchmarks(), collectiveBenchmarks(), startBenchmarks(), teamBenchmarks())
}

// kibibytes is the unit of memory: a sample is in bytes.
func kibibytes() unit {
	return unit{name: "KiB", value: func(bytes float64, _ int) float64 { return bytes / 1024 }}
}

// windowBenchmarks returns the benchmarks of windows and teams, and their floors. A new one is a row
// here.
func windowBenchmarks() []benchmark {
	return []benchmark{
		{name: "put_latency", osu: "osu_put_latency", syncs: "flush,flush_local,lock,fence", about: "put and flush", sized: true, unit: micros(), setup: putLatency},
		{name: "put_latency_floor", about: "copy and full barrier, or a round trip of a raw socket", sized: true, unit: micros(), setup: putLatencyFloor},
		{name: "put_issue", about: "put without flush", sized: true, unit: micros(), setup: putIssue},
		{name: "put_issue_floor", about: "copy", sized: true, unit: micros(), setup: putIssueFloor},
		{name: "get_latency", osu: "osu_get_latency", syncs: "flush,lock,fence", about: "get", sized: true, unit: micros(), setup: getLatency},
		{name: "get_latency_floor", about: "copy, or a round trip of a raw socket", sized: true, unit: micros(), setup: getLatencyFloor},
		{name: "fetch_add_latency", osu: "osu_fop_latency", about: "FetchAdd of 8 bytes", unit: micros(), setup: fetchAddLatency},
		{name: "fetch_add_latency_floor", about: "atomic.AddUint64, or a round trip of a raw socket", unit: micros(), setup: fetchAddLatencyFloor},
		{name: "cas_latency", osu: "osu_cas_latency", about: "CompareSwap of 8 bytes", unit: micros(), setup: casLatency},
		{name: "cas_latency_floor", about: "atomic.CompareAndSwapUint64, or a round trip of a raw socket", unit: micros(), setup: casLatencyFloor},
		{name: "put_bw", osu: "osu_put_bw", about: "64 puts under way, then flush", sized: true, unit: megabytes(), setup: putBandwidth},
		{name: "put_bw_floor", about: "memcpy, or a raw socket's stream", sized: true, unit: megabytes(), setup: putBandwidthFloor},
		{name: "get_bw", osu: "osu_get_bw", about: "64 gets under way", sized: true, unit: megabytes(), setup: getBandwidth},
		{name: "get_bw_floor", about: "memcpy, or a raw socket's stream", sized: true, unit: megabytes(), setup: getBandwidthFloor},
		{name: "put_notify_latency", about: "PutNotify and WaitNotify, ping-pong, one way", sized: true, unit: oneWay(), setup: notifyLatency},
		{name: "put_notify_latency_floor", about: "the same on mapped words, or with a raw socket", sized: true, unit: oneWay(), setup: notifyLatencyFloor},
		{name: "barrier", about: "Barrier of all ranks", unit: micros(), setup: barrierLatency},
		{name: "fence", about: "Fence of all ranks", unit: micros(), setup: fenceLatency},
		{name: "lock_latency", about: "exclusive lock, put of 8 bytes, unlock; no other rank wants it", unit: micros(), setup: lockLatency},
		{name: "switch_mapped", group: "switch", about: "write and flush by mapping", sized: true, unit: micros(), setup: switchMapped},
		{name: "switch_fma", group: "switch", about: "write and flush, copied when posted", sized: true, unit: micros(), setup: switchFMA},
		{name: "switch_bulk", group: "switch", about: "write and flush, from the caller's slice", sized: true, unit: micros(), setup: switchBulk},
	}
}

// pipeBenchmarks returns the benchmarks of pipes, channels and remote allocation, and their floors.
func pipeBenchmarks() []benchmark {
	fresh, crumbs, alloc, peers, rate := "rmalloc_fresh", "rmalloc_crumbs", "rpipe_alloc", "rpipe_peers", "aggregate_rate"
	return []benchmark{
		{name: "rpipe_latency", osu: "osu_latency", group: "rpipe_latency", about: "Alloc, Write, Read and Free, ping-pong, one way", sized: true, unit: oneWay(), setup: rpipeLatency},
		{name: "channel_latency", group: "rpipe_latency", about: "a message of a collective call through a channel, ping-pong, one way", sized: true, unit: oneWay(), setup: channelLatency},
		{name: "channel_send", group: "loggp", about: "processor time of a message at its sender", sized: true, unit: micros(), setup: channelSend},
		{name: "channel_receive", group: "loggp", about: "processor time of a message at its receiver", sized: true, unit: micros(), setup: channelReceive},
		{name: "channel_stream", group: "loggp", about: "one message after another, each", sized: true, unit: micros(), setup: channelStream},
		{name: "rpipe_twoputs_latency", group: "rpipe_latency", about: "the same, data and flag as two puts", sized: true, unit: oneWay(), setup: rpipeTwoPutsLatency},
		{name: "rpipe_read_latency", group: "rpipe_latency", about: "the same, fetched by the reader", sized: true, unit: oneWay(), setup: rpipeReadLatency},
		{name: "rpipe_window_latency", group: "rpipe_latency", about: "pushed over a window's public calls", sized: true, unit: oneWay(), setup: rpipeWindowLatency()},
		{name: "rpipe_window_read_latency", group: "rpipe_latency", about: "pulled over a window's public calls", sized: true, unit: oneWay(), setup: rpipeWindowLatency(rpipe.WithPull())},
		{name: "rpipe_latency_floor", group: "rpipe_latency", about: "the same layout by hand, or with a raw socket", sized: true, unit: oneWay(), setup: rpipeLatencyFloor},
		{name: "rpipe_bw", osu: "osu_bw", about: "blocks into a pipe", sized: true, unit: megabytes(), setup: rpipeBandwidth},
		{name: "rpipe_read_bw", about: "blocks fetched by the reader", sized: true, unit: megabytes(), setup: rpipeReadBandwidth},
		{name: "rpipe_bw_floor", about: "the same layout by hand, or a raw socket's stream", sized: true, unit: megabytes(), setup: rpipeBandwidthFloor},
		{name: "rmalloc_fresh_next", group: fresh, about: "next fit, search alone, heap without blocks", sized: true, unit: micros(), setup: searching(rpipe.NextFit{})},
		{name: "rmalloc_fresh_first", group: fresh, about: "first fit", sized: true, unit: micros(), setup: searching(rpipe.FirstFit{})},
		{name: "rmalloc_fresh_best", group: fresh, about: "best fit", sized: true, unit: micros(), setup: searching(rpipe.BestFit{})},
		{name: "rmalloc_fresh_worst", group: fresh, about: "worst fit", sized: true, unit: micros(), setup: searching(rpipe.WorstFit{})},
		{name: "rmalloc_crumbs_next", group: crumbs, about: "next fit, search alone, heap of crumbs", sized: true, unit: micros(), setup: searchingCrumbs(rpipe.NextFit{})},
		{name: "rmalloc_crumbs_first", group: crumbs, about: "first fit", sized: true, unit: micros(), setup: searchingCrumbs(rpipe.FirstFit{})},
		{name: "rmalloc_crumbs_best", group: crumbs, about: "best fit", sized: true, unit: micros(), setup: searchingCrumbs(rpipe.BestFit{})},
		{name: "rmalloc_crumbs_worst", group: crumbs, about: "worst fit", sized: true, unit: micros(), setup: searchingCrumbs(rpipe.WorstFit{})},
		{name: "rpipe_alloc_next", group: alloc, about: "rpipe_latency in heaps of crumbs, next fit", sized: true, unit: oneWay(), setup: allocating(rpipe.NextFit{}, rpipe.Deferred)},
		{name: "rpipe_alloc_next_immediate", group: alloc, about: "next fit, each Alloc looking for freed memory", sized: true, unit: oneWay(), setup: allocating(rpipe.NextFit{}, rpipe.Immediate)},
		{name: "rpipe_alloc_first", group: alloc, about: "first fit", sized: true, unit: oneWay(), setup: allocating(rpipe.FirstFit{}, rpipe.Deferred)},
		{name: "rpipe_alloc_best", group: alloc, about: "best fit, each Alloc asking", sized: true, unit: oneWay(), setup: allocating(rpipe.BestFit{}, rpipe.Immediate)},
		{name: "rpipe_alloc_worst", group: alloc, about: "worst fit, each Alloc asking", sized: true, unit: oneWay(), setup: allocating(rpipe.WorstFit{}, rpipe.Immediate)},
		{name: "rpipe_peers_2", group: peers, about: "Alloc and Write, 2 pipes at random", unit: micros(), setup: rpipePeers(2)},
		{name: "rpipe_peers_10", group: peers, about: "10 pipes", unit: micros(), setup: rpipePeers(10)},
		{name: "rpipe_peers_100", group: peers, about: "100 pipes", unit: micros(), setup: rpipePeers(100)},
		{name: "rpipe_peers_1000", group: peers, about: "1000 pipes", unit: micros(), setup: rpipePeers(1000)},
		{name: "aggregate_rate_1", group: rate, about: "blocks of 8 bytes through a fan-in of one pipe", unit: millions(), setup: fanInRate(1)},
		{name: "aggregate_rate_64", group: rate, about: "64 pipes at random", unit: millions(), setup: fanInRate(64)},
		{name: "aggregate_rate_1000", group: rate, about: "1000 pipes at random", unit: millions(), setup: fanInRate(1000)},
	}
}

// conveyorBenchmarks returns the benchmarks of conveyors with records of one
// type.
func conveyorBenchmarks[R record]() []benchmark {
	var r R
	name := fmt.Sprintf("conveyor_rate_%d", len(r))
	return []benchmark{
		{name: name + "_one", group: name, about: fmt.Sprintf("records of %d bytes by conveyor to one rank", len(r)), bytes: len(r), unit: millions(), setup: conveyorRate[R]},
		{name: name + "_pipe", group: name, about: "the same, each a block of a pipe", bytes: len(r), unit: millions(), setup: pipesRate[R]},
		{name: name + "_channel", group: name, about: "the same, each a value of a channel", bytes: len(r), unit: millions(), setup: channelRate[R]},
		{name: name + "_floor", group: name, about: "the same as a loop of stores, or a raw socket's stream", bytes: len(r), unit: millions(), setup: conveyorRateFloor[R]},
		{name: name + "_all", group: name, about: "by conveyor from each rank to all, and pulled there", bytes: len(r), unit: millions(), setup: conveyorRateAll[R]},
		{name: name + "_all_pipes", group: name, about: "the same, each a block of a pipe", bytes: len(r), unit: millions(), setup: pipesRateAll[R]},
	}
}

// pollBenchmarks returns the benchmarks of a look that finds nothing.
func pollBenchmarks() []benchmark {
	return []benchmark{
		{name: "nfp", about: "TryRead that finds nothing", unit: micros(), setup: polling},
		{name: "nfp_floor", about: "a load", unit: micros(), setup: pollingFloor},
	}
}

// printList prints the name of each benchmark, its name in the OSU suite, and what it measures, for
// -list.
func printList(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range benchmarks() {
		fmt.Fprintf(table, "%s\t%s\t%s\n", b.name, b.osu, b.about)
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
}
