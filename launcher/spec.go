package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Program is one executable of a job and how many ranks run it.
type Program struct {
	Path string   // as in a shell: looked up in PATH unless it has a slash
	Args []string // without the program's name
	N    int
	Env  []string // NAME=value, for these ranks only
}

// A Spec describes a job. The zero value of every field but Programs makes sense.
type Spec struct {
	Programs []Program // ranks are numbered through, program by program
	Env      []string  // NAME=value for all ranks, on top of this process's environment
	Dir      string    // working directory of the ranks

	Stdin   io.Reader   // nil: ranks read end-of-file; a terminal is read in its foreground only
	StdinTo StdinTarget // ranks that read it; default rank 0
	// Stdout and Stderr take the output of the ranks. Ranks get a file itself,
	// unless Tag is set or the file is a terminal that stops output from the
	// background (stty tostop). Other writers get whole lines.
	Stdout, Stderr io.Writer
	Tag            bool   // put "[rank] " before each line
	OutputDir      string // instead: the output of rank N goes to DIR/rank-N.log

	Bind      Binding
	Timeout   time.Duration // 0: none; stops by SIGTSTP do not count, here and below
	Grace     time.Duration // from the first failure to SIGTERM; 0: 1 s, negative: none
	KillWait  time.Duration // from the first SIGTERM or SIGINT to SIGKILL; 0: 2 s, negative: none
	KeepGoing bool          // a failure does not end the job

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

// StdinTarget selects the ranks that read the launcher's standard input: a rank,
// or one of the constants.
type StdinTarget int

const (
	StdinAll  StdinTarget = -1
	StdinNone StdinTarget = -2
)

// Binding selects the cores that a rank may run on.
type Binding int

const (
	BindNone Binding = iota // all that the launcher may run on
	BindCore                // one physical core each, in turn
	BindNUMA                // one NUMA node each, in turn
)

const (
	defaultGrace    = time.Second
	defaultKillWait = 2 * time.Second
)

// ErrSpec: the Spec describes no job.
var ErrSpec = errors.New("invalid job")

// size returns the number of ranks.
func (s *Spec) size() int {
	n := 0
	for _, p := range s.Programs {
		n += p.N
	}
	return n
}

func (s *Spec) check() error {
	if len(s.Programs) == 0 {
		return fmt.Errorf("%w: no program", ErrSpec)
	}
	for _, p := range s.Programs {
		if p.N < 1 {
			return fmt.Errorf("%w: %d ranks of %s; ask for at least one with -n", ErrSpec, p.N, p.Path)
		}
	}
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("%w: working directory %s is no directory", ErrSpec, s.Dir)
		}
	}
	if n := s.size(); s.StdinTo < StdinNone || int(s.StdinTo) >= n {
		return fmt.Errorf("%w: standard input for rank %d of %d", ErrSpec, s.StdinTo, n)
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
