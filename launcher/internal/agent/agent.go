//go:build linux

package agent

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/launcher/internal/spawn"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// sweepPatience bounds the sweep at the end of a job. A process outlasts it only
// if it cannot be killed.
const sweepPatience = 5 * time.Second

// An Agent runs the ranks of one host.
type Agent struct {
	plan  wire.Plan
	paths []string // of the programs
	files func(rank int) (Files, error)
	post  func(wire.Message)

	reservations *memory.Memfd // of memory by the ranks of this host
	placement    *placement
	spawner      *spawn.Spawner
	guardians    []*guardian
	errors       *errorPipe // nil: ranks print their errors themselves

	mu        sync.Mutex
	processes []*spawn.Process
	begun     bool     // Start was called
	ending    requests // that tell ranks to end; ranks that start later get them, too
	over      bool     // Close has begun
	waiting   sync.WaitGroup
	reading   sync.WaitGroup
}

// New makes all parts of an agent but the ranks. The function files gives a rank its standard
// files. Several goroutines call post with the agent's messages.
func New(plan wire.Plan, paths []string, files func(rank int) (Files, error), post func(wire.Message)) (a *Agent, err error) {
	a = &Agent{plan: plan, paths: paths, files: files, post: post}
	if a.placement, err = newPlacement(Binding(plan.Bind), "/sys/devices/system"); err != nil {
		return nil, err
	}
	if plan.Guardian {
		if a.guardians, err = startGuardians(nameOf(plan)); err != nil {
			return nil, err
		}
	}
	if a.reservations, err = memory.NewReservations(len(plan.Ranks)); err != nil {
		dismiss(a.guardians)
		return nil, err
	}
	if plan.Errors {
		if a.errors, err = newErrorPipe(plan.Size); err != nil {
			dismiss(a.guardians)
			a.reservations.Close() //nolint:errcheck // nothing has it
			return nil, err
		}
	}
	a.spawner = spawn.New()
	return a, nil
}

// maxRanksPerCore bounds the ranks that start without --oversubscribe. Some hundred ranks on
// two cores are slow but work; some ten thousand stall the machine.
const maxRanksPerCore = 256

// fits refuses a number of ranks that looks like a typing error.
func fits(plan wire.Plan, cores int) error {
	if most := maxRanksPerCore * cores; len(plan.Ranks) > most && !plan.Crowd {
		return fmt.Errorf("%d ranks on %d cores would stall it; ask for at most %d there, or give --oversubscribe", len(plan.Ranks), cores, most)
	}
	return nil
}

// Prepare finds the programs of a plan that no stream brings, and checks its working directory. The
// function staged returns the path of a program that a stream brought.
func Prepare(plan wire.Plan, staged func(program int) string) (paths []string, err error) {
	if err := fits(plan, goruntime.NumCPU()); err != nil {
		return nil, err
	}
	if plan.Dir != "" {
		if info, err := os.Stat(plan.Dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("working directory %s is no directory there; name another one with --wdir", plan.Dir)
		}
	}
	for i, p := range plan.Programs {
		if p.Staged {
			paths = append(paths, staged(i))
			continue
		}
		path, err := resolve(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Start starts the ranks in order. It posts KindStarted, or after an error
// KindNotStarted for the rank that failed and those behind it.
func (a *Agent) Start() {
	failure := a.begin()
	for local, rank := range a.plan.Ranks {
		if failure == nil {
			failure = a.startRank(local, rank)
		}
		if failure != nil {
			a.post(wire.Message{Kind: wire.KindNotStarted, Rank: rank.Rank, Fault: faultOf(failure)})
		}
	}
	go a.endErrors()
	if failure == nil {
		a.post(wire.Message{Kind: wire.KindStarted})
	}
}

// begin begins to read the final errors.
func (a *Agent) begin() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return errOver
	}
	a.begun = true
	if a.errors != nil {
		a.reading.Go(func() { a.errors.read(a.post) })
	}
	return nil
}

// errOver: a rank was to start after the end of the job.
var errOver = errors.New("the job is over")

// startRank starts a rank whose exit becomes a message.
func (a *Agent) startRank(local int, rank wire.Rank) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return errOver
	}
	process, files, err := a.launch(local, rank)
	if err != nil {
		return err
	}
	for _, sig := range a.ending.all() {
		process.Signal(sig)
	}
	a.processes = append(a.processes, process)
	a.waiting.Go(func() {
		status, err := process.Wait()
		files.ended()
		m := wire.Message{Kind: wire.KindExited, Rank: rank.Rank, Status: uint32(status)}
		if err != nil {
			m.Fault = faultOf(fmt.Errorf("wait for rank %d: %w", rank.Rank, err))
		}
		a.post(m)
	})
	return nil
}

// endErrors ends the reading of final errors when no rank is left.
func (a *Agent) endErrors() {
	a.waiting.Wait()
	if a.errors != nil {
		a.errors.end()
	}
}

// Signal sends all ranks a signal.
func (a *Agent) Signal(sig syscall.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending.add(sig)
	for _, p := range a.processes {
		p.Signal(sig)
	}
}

// heed handles a signal that reached the agent, and reports whether the ranks have begun to
// start. A resource manager has sent the signal to ranks that run.
func (a *Agent) heed(sig syscall.Signal) bool {
	if a.plan.Managed {
		a.ending.add(sig) // at once: a rank that is starting must find it
	} else {
		a.Signal(sig)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.begun
}

// requests holds the signals that ask ranks to end. Its mutex is its own: startRank holds
// that of the agent while it starts a rank, and reads the requests afterward.
type requests struct {
	mu      sync.Mutex
	signals []syscall.Signal
}

// add notes a signal if it asks ranks to end.
func (r *requests) add(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ends(sig) {
		r.signals = append(r.signals, sig)
	}
}

// all returns the signals so far.
func (r *requests) all() []syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.signals)
}

// Sweep kills all processes of the job that are left on this host. No rank starts
// afterwards.
func (a *Agent) Sweep() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	sweep(nameOf(a.plan), time.Now().Add(sweepPatience))
}

// Close frees everything. The caller has called Sweep.
func (a *Agent) Close() {
	a.waiting.Wait()
	if a.errors != nil {
		a.reading.Wait()
		a.errors.close()
	}
	dismiss(a.guardians)
	a.spawner.Stop()
	a.reservations.Close() //nolint:errcheck // the ranks are gone
}
