//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A probe measures the time of a cache line from one core to another and back, between two
// processes: this one and a copy of this program, which echoes. The copy sleeps between
// measurements.
type probe struct {
	lines *probeLines
	echo  *exec.Cmd
	wake  io.WriteCloser
	ready io.Reader
	cores [2]int
	turns chan chan time.Duration
}

// echoEnv makes this program the echo of a probe.
const echoEnv = "GOPGAS_COMPARE_ECHO"

// Numbers of a measurement. Its result is the least mean of a chunk, so that a disturbance
// does not show.
const (
	probeChunks = 20
	probeTrips  = 200
	probeLimit  = time.Second
)

// newProbe starts the echo. It returns nil where there are not two cores to use.
func newProbe(ctx context.Context) (*probe, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, err
	}
	var cores []int
	for core := range len(allowed) * 64 {
		if allowed.IsSet(core) && len(cores) < 2 {
			cores = append(cores, core)
		}
	}
	if len(cores) < 2 {
		return nil, nil
	}
	fd, err := unix.MemfdCreate("gopgas-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	shared := os.NewFile(uintptr(fd), "probe")
	defer shared.Close() // the mapping stays
	p := &probe{cores: [2]int(cores), turns: make(chan chan time.Duration)}
	if p.lines, err = mapLines(shared, true); err != nil {
		return nil, err
	}
	if err := p.startEcho(ctx, shared); err != nil {
		return nil, err
	}
	go p.serve()
	return p, nil
}

// startEcho starts the process on the second core that echoes a line of shared memory.
func (p *probe) startEcho(ctx context.Context, shared *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.echo = exec.CommandContext(ctx, self)
	p.echo.Env = append(os.Environ(), fmt.Sprintf("%s=%d", echoEnv, p.cores[1]))
	p.echo.ExtraFiles = []*os.File{shared}
	p.echo.Stderr = os.Stderr
	if p.wake, err = p.echo.StdinPipe(); err != nil {
		return err
	}
	out, err := p.echo.StdoutPipe()
	if err != nil {
		return err
	}
	p.ready = out
	return p.echo.Start()
}

// serve measures on a thread of its own, which is bound. The thread ends with the goroutine.
func (p *probe) serve() {
	goruntime.LockOSThread()
	bindThread(p.cores[0])
	for result := range p.turns {
		result <- p.measure()
	}
}

// bindThread binds the calling thread to a core.
func bindThread(core int) {
	var set unix.CPUSet
	set.Set(core)
	unix.SchedSetaffinity(0, &set) //nolint:errcheck // an unbound measurement is noisier, and not wrong
}

// distance returns the time of one way; 0 if there is no probe or the echo did not respond.
func (p *probe) distance() time.Duration {
	if p == nil {
		return 0
	}
	result := make(chan time.Duration)
	p.turns <- result
	return <-result
}

// measure returns half of the shortest round trip of a cache line between the two cores. It returns 0
// if the echo did not respond in time.
func (p *probe) measure() time.Duration {
	var one [1]byte
	if _, err := p.wake.Write(one[:]); err != nil {
		return 0
	}
	if _, err := io.ReadFull(p.ready, one[:]); err != nil {
		return 0
	}
	deadline := time.Now().Add(probeLimit)
	best := time.Duration(0)
	for range probeChunks {
		began := time.Now()
		for range probeTrips {
			if !p.lines.trip(deadline) {
				p.lines.stop()
				return best
			}
		}
		if took := time.Since(began) / (2 * probeTrips); best == 0 || took < best {
			best = took
		}
	}
	p.lines.stop()
	return best
}

// close ends the echo.
func (p *probe) close() error {
	if p == nil {
		return nil
	}
	close(p.turns)
	return errors.Join(p.wake.Close(), p.echo.Wait())
}

// echoed runs the echo if core names one, until its input ends. It reports whether this
// process is an echo, and its exit code.
func echoed(core string) (code int, is bool) {
	if core == "" {
		return 0, false
	}
	goruntime.LockOSThread()
	var n int
	if _, err := fmt.Sscan(core, &n); err != nil {
		fmt.Fprintf(os.Stderr, "compare: %s=%q: want a core\n", echoEnv, core)
		return 2, true
	}
	bindThread(n)
	lines, err := mapLines(os.NewFile(3, "probe"), false)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		return 2, true
	}
	var one [1]byte
	for {
		if _, err := os.Stdin.Read(one[:]); err != nil {
			return 0, true
		}
		lines.begin()
		if _, err := os.Stdout.Write(one[:]); err != nil {
			return 0, true
		}
		lines.echo(time.Now().Add(2 * probeLimit))
	}
}
