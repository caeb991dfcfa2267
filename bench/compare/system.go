//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gopgas/gopgas/bench/peers"
)

// ours names gopgas among the systems.
const ours = "gopgas"

// A system is gopgas, or a peer in one configuration.
type system struct {
	name    string
	limit   bool // of the machine; no peer
	command func(g *group, figure time.Duration) []string
}

// systems returns those that can run a group: gopgas first.
func systems(dir string, g *group) []system {
	all := []system{{name: ours, command: func(g *group, figure time.Duration) []string { return gopgas(dir, g, figure) }}}
	for _, c := range peers.Configs() {
		for _, program := range programsOf(g) {
			if !c.Runs(dir, program, g.Provider, g.Ranks) {
				continue
			}
			all = append(all, peer(dir, program, c, false))
			if g.Bound && !c.Limit && g.Ranks > goruntime.NumCPU() {
				all = append(all, peer(dir, program, c, true))
			}
		}
	}
	return all
}

// peer returns a library in one configuration. In blocks, its ranks are bound as those of grun, where they outnumber the
// cores; else its launcher binds none of them there.
func peer(dir, program string, c peers.Config, blocks bool) system {
	name := c.Name
	if blocks {
		name += "-blocks"
	}
	return system{name: name, limit: c.Limit, command: func(g *group, figure time.Duration) []string {
		return c.Command(&peers.Job{Dir: dir, Program: program, Provider: g.Provider, Ranks: g.Ranks, Cores: goruntime.NumCPU(),
			Bound: g.Bound, Blocks: blocks, Args: peerArgs(g, figure)})
	}}
}

// programsOf names the programs of peers that may have a benchmark of the group.
func programsOf(g *group) []string {
	programs := []string{"bare", "shmem"}
	calls, teams := 0, 0
	for _, b := range g.benchmarks {
		if strings.HasPrefix(b, "team_") {
			teams++
		}
		if strings.HasPrefix(b, "coll_") || strings.HasPrefix(b, "beside_") {
			calls++
		}
	}
	if calls > 0 {
		programs = append(programs, "coll")
	}
	if teams > 0 {
		programs = append(programs, "team")
	}
	if calls+teams < len(g.benchmarks) {
		programs = append(programs, "rma")
	}
	return programs
}

// gopgas returns the command of our own job. Collective calls take slices, as peers do.
func gopgas(dir string, g *group, figure time.Duration) []string {
	command := []string{filepath.Join(dir, "grun"), "-n", strconv.Itoa(g.Ranks), "--provider", g.Provider}
	if g.Bound {
		command = append(command, "--bind-to", "core")
	}
	command = append(command, filepath.Join(dir, "bench"), "-json", "-exact", "-size", list(g.sizes), "-time", figure.String(), "-buffers", strconv.Itoa(g.Buffers))
	if g.Lockstep {
		command = append(command, "-lockstep")
	}
	for _, b := range g.benchmarks {
		if strings.HasPrefix(b, "coll_") && b != "coll_barrier" {
			b += "_slices"
		}
		command = append(command, b)
	}
	return command
}

// peerArgs are the arguments of the programs in bench/peers.
func peerArgs(g *group, figure time.Duration) []string {
	args := []string{"-b", strconv.Itoa(g.Buffers)}
	if g.Lockstep {
		args = append(args, "-l")
	}
	args = append(args, strconv.FormatFloat(figure.Seconds(), 'f', -1, 64), list(g.sizes))
	for _, b := range g.benchmarks {
		args = append(args, b)
		for _, v := range variants() {
			args = append(args, b+v) // a program leaves out those that it does not have
		}
	}
	return args
}

// variants returns the ends of the names of a peer's benchmarks that do the same work in another
// way: by messages, or with calls of MPI_Test in a computation.
func variants() []string { return []string{"_send", "_test"} }

// list returns sizes as an argument of the peers' programs.
func list(sizes []int) string {
	words := make([]string, len(sizes))
	for i, s := range sizes {
		words[i] = strconv.Itoa(s)
	}
	return strings.Join(words, ",")
}

// A figure is one result of one turn.
type figure struct {
	System    string  `json:"system"`
	Benchmark string  `json:"benchmark"`
	Size      int     `json:"size"`
	Unit      string  `json:"unit"`
	Min       float64 `json:"min"`
	Median    float64 `json:"median"`
	P99       float64 `json:"p99"`
}

// run runs a system once. A system that fails or takes longer than limit counts with the
// figures that it has printed; the error says so.
func (s *system) run(ctx context.Context, g *group, each, limit time.Duration) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := s.command(g, each)
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // launchers end their ranks
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%s: took longer than %v, or was interrupted: %w", s.name, limit, err)
	case err != nil:
		err = fmt.Errorf("%s: %w: %s", s.name, err, firstLine(said.Bytes()))
	}
	figures, bad := readFigures(s.name, out.Bytes())
	return figures, errors.Join(err, bad)
}

// firstLine returns the first line of a program's output.
func firstLine(said []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(said), []byte("\n"))
	return string(line)
}

// readFigures reads the whole lines of an output. Lines that are no JSON are a launcher's.
func readFigures(name string, out []byte) (figures []figure, err error) {
	for line := range bytes.Lines(out) {
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		var f figure
		if err := json.Unmarshal(line, &f); err != nil {
			return figures, fmt.Errorf("%s printed %q: %w", name, bytes.TrimSpace(line), err)
		}
		if f.Median <= 0 {
			continue
		}
		f.System = name
		f.Benchmark = strings.TrimSuffix(f.Benchmark, "_slices")
		for _, v := range variants() {
			if b, is := strings.CutSuffix(f.Benchmark, v); is {
				f.System, f.Benchmark = name+"/"+v[1:], b
			}
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// cost returns a number that grows as the figure gets worse.
func (f *figure) cost() float64 { return result{f.Benchmark, f.Size, f.Unit, f.Median}.cost() }
