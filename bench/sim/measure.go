package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gopgas/gopgas/collectives/loggp"
)

// The sizes between which the times of a byte are measured, in bytes. measuredSizes are both.
const (
	shortSize, longSize = 8, 16 << 10
	measuredSizes       = "8,16K"
)

// rendezvous is the length from which messages of a small team land over tcp: see
// channel.End.Lands.
const rendezvous = 256 << 10

// A point is one benchmark at one size.
type point struct {
	benchmark string
	size      int
}

// programs is a folder with grun and bench.
type programs string

// build builds grun and bench in a folder that the caller removes.
func build(ctx context.Context, news io.Writer) (programs, error) {
	dir, err := os.MkdirTemp("", "sim-")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(news, "sim: building grun and bench")
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "./cmd/grun", "./bench")
	if said, err := build.CombinedOutput(); err != nil {
		return programs(dir), fmt.Errorf("building grun and bench: %w: %s; run in the project's folder, or give -constants", err, bytes.TrimSpace(said))
	}
	return programs(dir), nil
}

// measure measures the constants with two bound ranks, over shm and tcp.
func measure(ctx context.Context, dir programs, each time.Duration, news io.Writer) (*constants, error) {
	c := &constants{}
	for _, over := range []struct {
		provider string
		link     *loggp.Link
	}{{"shm", &c.Within}, {"tcp", &c.Among}} {
		fmt.Fprintf(news, "sim: measuring over %s\n", over.provider)
		times, err := benchmarks(ctx, dir, over.provider, each, measuredSizes, "loggp", "channel_latency", "coll_reduce_slices", "coll_broadcast_slices", "coll_allreduce_slices")
		if err != nil {
			return nil, err
		}
		fit(over.link, times)
		if over.provider == "shm" {
			c.CombinePerByte = combining(times)
			c.PerCall = max(0, times[point{"coll_allreduce_slices", shortSize}]-times[point{"channel_latency", shortSize}])
		}
	}
	c.Among.Rendezvous = rendezvous
	return c, nil
}

// benchmarks returns the medians of a job's benchmarks, in nanoseconds.
func benchmarks(ctx context.Context, dir programs, provider string, each time.Duration, sizes string, names ...string) (map[point]float64, error) {
	args := []string{"-n", "2", "--bind-to", "core", "--provider", provider, filepath.Join(string(dir), "bench"), "-json", "-size", sizes, "-time", each.String()}
	var said bytes.Buffer
	job := exec.CommandContext(ctx, filepath.Join(string(dir), "grun"), append(args, names...)...)
	job.Cancel = func() error { return job.Process.Signal(os.Interrupt) }
	job.Stderr, job.Env = &said, append(os.Environ(), "GRUN_COLLECTIVES=messages")
	out, err := job.Output()
	if err != nil {
		return nil, fmt.Errorf("bench over %s: %w: %s", provider, err, bytes.TrimSpace(said.Bytes()))
	}
	return readTimes(out)
}

// readTimes reads the output of bench.
func readTimes(out []byte) (map[point]float64, error) {
	times := map[point]float64{}
	lines := json.NewDecoder(bytes.NewReader(out))
	for {
		var one struct {
			Benchmark string
			Size      int
			Median    float64 // microseconds
		}
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return times, nil
		case err != nil:
			return nil, fmt.Errorf("output of bench: %w", err)
		}
		times[point{one.Benchmark, one.Size}] = one.Median * 1000
	}
}

// fit sets a link's constants from the times of its benchmarks. The latency is the rest of the
// time of a message, behind the processor times of its sender and its receiver.
func fit(l *loggp.Link, times map[point]float64) {
	at := func(name string) float64 { return times[point{name, shortSize}] }
	slope := func(name string) float64 { return max(0, slopeOf(times, name)) }
	l.Send, l.Receive, l.Gap = at("channel_send"), at("channel_receive"), at("channel_stream")
	l.SendPerByte, l.ReceivePerByte = slope("channel_send"), slope("channel_receive")
	l.Latency = max(0, at("channel_latency")-l.Send-l.Receive)
	l.PerByte = max(0, slope("channel_latency")-l.SendPerByte-l.ReceivePerByte)
}

// combining returns the time to combine a byte: by it, a reduction of two ranks takes longer
// than a broadcast.
func combining(times map[point]float64) float64 {
	return max(0, slopeOf(times, "coll_reduce_slices")-slopeOf(times, "coll_broadcast_slices"))
}

// slopeOf returns the time of a byte in a benchmark.
func slopeOf(times map[point]float64, name string) float64 {
	return (times[point{name, longSize}] - times[point{name, shortSize}]) / (longSize - shortSize)
}
