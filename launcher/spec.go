//go:build linux

package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/gopgas/gopgas/launcher/internal/agent"
)

// A Program is one executable of a job and how many ranks run it.
type Program struct {
	Path string   // as in a shell: looked up in PATH unless it has a slash
	Args []string // without the program's name
	N    int
	Env  []string // NAME=value, for these ranks only
	// Stage copies the program to the other hosts for the time of the job. Else they
	// have it at the same path, or in their PATH.
	Stage bool
}

// A Spec describes a job. The zero value of every field but Programs makes sense.
type Spec struct {
	Programs []Program // ranks are numbered through, program by program
	// Env has NAME=value for all ranks, on top of this process's environment. On other
	// hosts it is on top of theirs, with GRUN_ variables of this process and those that
	// Go's runtime reads.
	Env []string
	Dir string // working directory of the ranks; "": this process's, on other hosts too

	// Hosts have slots for the ranks, which are placed on them in the order of MapBy.
	// nil: this host, for all of them.
	Hosts         []hosts.Host
	MapBy         hosts.By
	Oversubscribe bool    // more ranks than slots
	Backend       Backend // reaches hosts other than this one

	Stdin   io.Reader   // nil: ranks read end-of-file; a terminal is read in its foreground only
	StdinTo StdinTarget // ranks that read it; default rank 0
	// Stdout and Stderr take the output of the ranks. Ranks of this host get a file itself. They do
	// not if Tag is set, or if the file is a terminal that stops output from the background (stty
	// tostop). Other writers get whole lines.
	Stdout, Stderr io.Writer
	Tag            bool   // put "[rank] " or "[rank@host] " before each line
	OutputDir      string // instead: the output of rank N goes to DIR/rank-N.log, on this host

	Bind     Binding
	Timeout  time.Duration // 0: none; stops by SIGTSTP do not count, here and below
	Grace    time.Duration // from the first failure to SIGTERM; 0: 1 s, negative: none
	KillWait time.Duration // from the first SIGTERM or SIGINT to SIGKILL; 0: 2 s, negative: none
	// StartTimeout bounds the time until all hosts are ready. 0: 1 m. GRUN_START_TIMEOUT
	// in Env bounds the time from the first rank's Init to the last; without it a line
	// names late ranks after 1 m.
	StartTimeout time.Duration
	// PeerTimeout bounds the silence of another host. 0: 30 s.
	PeerTimeout time.Duration
	KeepGoing   bool // a failure does not end the job

	// Run calls Started once every rank runs its program.
	Started func()
	// Run passes Signals on to all ranks. SIGINT and SIGTERM end the job: ranks
	// that still run after KillWait, or at the second signal, are killed. SIGTSTP
	// stops this process as well; when it goes on, so do the ranks.
	Signals <-chan os.Signal
	// Guardian starts this executable again, twice, to clean up if this process
	// is killed. Its main must call GuardianMain first.
	Guardian bool
}

// A Backend reaches other hosts. The program that it runs there has a byte stream to this
// process: the command's standard input and output.
type Backend interface {
	// Command returns the command that has a shell on a host run line. An agent of
	// another host may run it, too.
	Command(host hosts.Host, line string) []string
	// Explain returns the error, with its remedy, of a command that ended before the
	// program spoke. said is the end of its standard error.
	Explain(host hosts.Host, status syscall.WaitStatus, said string) error
	// Name names the backend in errors.
	Name() string
}

// A Manager is a Backend of a resource manager, which may end the job.
type Manager interface {
	Backend
	// Ended returns why the manager ended the job, "" if it did not. said is the end of
	// the standard error of a command.
	Ended(said string) string
}

// StdinTarget selects the ranks that read the launcher's standard input: a rank,
// or one of the constants.
type StdinTarget int

const (
	StdinAll  StdinTarget = -1
	StdinNone StdinTarget = -2
)

// Binding selects the cores that a rank may run on.
type Binding = agent.Binding

const (
	BindNone = agent.BindNone // all that the launcher may run on
	BindCore = agent.BindCore // one physical core each; neighbors share one where ranks outnumber cores
	BindNUMA = agent.BindNUMA // one NUMA node each, as above
)

// ParseBinding reads none, core or numa.
func ParseBinding(text string) (Binding, error) { return agent.ParseBinding(text) }

const (
	defaultGrace        = time.Second
	defaultKillWait     = 2 * time.Second
	defaultStartTimeout = time.Minute
)

// ErrSpec: the Spec describes no job.
var ErrSpec = agent.ErrSpec

// ErrNoBackend: a job has other hosts, and its Spec no Backend.
var ErrNoBackend = errors.New("no backend reaches other hosts")

// size returns the number of ranks.
func (s *Spec) size() int {
	n := 0
	for _, p := range s.Programs {
		n += p.N
	}
	return n
}

// check refuses a Spec that names no rank, or standard input for a rank that is not there.
func (s *Spec) check() error {
	if len(s.Programs) == 0 {
		return fmt.Errorf("%w: no program", ErrSpec)
	}
	for _, p := range s.Programs {
		if p.N < 1 {
			return fmt.Errorf("%w: %d ranks of %s; ask for at least one with -n", ErrSpec, p.N, p.Path)
		}
	}
	if n := s.size(); s.StdinTo < StdinNone || int(s.StdinTo) >= n {
		return fmt.Errorf("%w: standard input for rank %d of %d", ErrSpec, s.StdinTo, n)
	}
	return nil
}

// checkDir looks for the working directory on this host.
func (s *Spec) checkDir() error {
	if s.Dir == "" {
		return nil
	}
	if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: working directory %s is no directory", ErrSpec, s.Dir)
	}
	return nil
}

// orDefault replaces a zero duration by the default and a negative one by none.
func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}
