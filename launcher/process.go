package launcher

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"golang.org/x/sys/unix"
)

// A process is one rank as the launcher sees it.
type process struct {
	rank int
	cmd  *exec.Cmd

	mu   sync.Mutex
	gone bool // reaped: the kernel may reuse its number

	// Events that the supervising loop has seen.
	joined, left bool
	ended        bool
	status       syscall.WaitStatus
	abort        string
	aborted      bool
	failed       bool
}

// command prepares a rank: an own process group, killed with the launcher.
func (j *job) command(rank, local int, p Program, path string) (*exec.Cmd, *unix.CPUSet) {
	cpus, cores := j.placement.of(local)
	cmd := &exec.Cmd{
		Path: path,
		Args: append([]string{p.Path}, p.Args...),
		Dir:  j.spec.Dir,
		SysProcAttr: &syscall.SysProcAttr{
			Setpgid:   true,
			Pdeathsig: syscall.SIGKILL,
		},
	}
	place := bootstrap.Env{
		JobID: j.id, Rank: rank, Size: j.size, LocalRank: local, LocalSize: j.size, LocalCores: j.placement.shared(),
		Addr: j.addr, Secret: j.secret, Reservations: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), j.reservations.FD()),
		ErrorPipe: j.errors.path(),
	}
	// Later entries win.
	cmd.Env = append(os.Environ(), j.spec.Env...)
	cmd.Env = append(cmd.Env, p.Env...)
	cmd.Env = append(cmd.Env, place.Vars()...)
	if !hasVar(cmd.Env, "GOMAXPROCS") {
		// One P would let a polling rank starve its own progress.
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(max(2, cores)))
	}
	return cmd, cpus
}

func hasVar(env []string, name string) bool {
	for _, v := range env {
		if len(v) > len(name) && v[:len(name)] == name && v[len(name)] == '=' {
			return true
		}
	}
	return false
}

// launch starts one rank.
func (j *job) launch(rank, local int, p Program, path string) (*process, error) {
	cmd, cpus := j.command(rank, local, p, path)
	stdin, err := j.input.open(rank)
	if err != nil {
		return nil, err
	}
	stdout, stderr, owned, err := j.output.open(rank)
	if stdin != nil {
		cmd.Stdin = stdin
		owned = append(owned, stdin)
	}
	defer func() {
		for _, f := range owned {
			f.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	if stderr != nil {
		cmd.Stderr = stderr
	}
	if err := j.spawner.start(cmd, cpus); err != nil {
		return nil, startError(p.Path, err)
	}
	return &process{rank: rank, cmd: cmd}, nil
}

// wait returns the exit status of the process. It reaps the process under the
// lock. Until then the kernel does not reuse the number, so signal hits no other
// process.
func (p *process) wait() (syscall.WaitStatus, error) {
	for {
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	state, err := p.cmd.Process.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for rank %d: %w", p.rank, err)
	}
	return state.Sys().(syscall.WaitStatus), nil
}

// signal reaches the rank and its children in the same process group.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		unix.Kill(-p.cmd.Process.Pid, sig) //nolint:errcheck // gone is fine
	}
}
