//go:build linux

package agent

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/internal/spawn"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// Files are the standard files of a rank; nil is /dev/null.
type Files struct {
	Stdin, Stdout, Stderr *os.File
	Manager               *os.File   // of Manage; nil: the rank has none
	Owned                 []*os.File // the agent closes them once the rank has them
	manager               *net.UnixConn
}

// Close closes the files that the agent owns.
func (f *Files) Close() {
	for _, file := range f.Owned {
		file.Close()
	}
}

// command prepares a rank.
func (a *Agent) command(local int, rank wire.Rank) (*exec.Cmd, spawn.Share) {
	program := a.plan.Programs[rank.Program]
	cpus, cores := a.placement.of(local, len(a.plan.Ranks))
	cmd := &exec.Cmd{
		Path: a.paths[rank.Program],
		Args: append([]string{program.Name}, program.Args...),
		Dir:  a.plan.Dir,
	}
	place := bootstrap.Env{
		JobID: a.plan.JobID, Rank: rank.Rank, Size: a.plan.Size, Host: a.plan.Host,
		LocalRank: local, LocalSize: len(a.plan.Ranks), LocalCores: a.placement.shared(),
		Addr: a.plan.Addr, Secret: a.plan.Secret, Reservations: fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), a.reservations.FD()),
		ErrorPipe: a.errors.path(),
	}
	// Later entries win.
	cmd.Env = append(withoutForeign(os.Environ()), a.plan.Env...)
	cmd.Env = append(cmd.Env, program.Env...)
	cmd.Env = append(cmd.Env, place.Vars()...)
	if !hasVar(cmd.Env, "GOMAXPROCS") {
		// One P would let a polling rank starve its own progress.
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(max(2, cores)))
	}
	return cmd, spawn.Share{Cores: cpus, Slack: a.placement.slack(len(a.plan.Ranks))}
}

// hasVar reports whether env sets a variable.
func hasVar(env []string, name string) bool {
	for _, v := range env {
		if strings.HasPrefix(v, name+"=") {
			return true
		}
	}
	return false
}

// launch starts one rank, and returns its files, which are closed here.
func (a *Agent) launch(local int, rank wire.Rank) (*spawn.Process, Files, error) {
	cmd, share := a.command(local, rank)
	files, err := a.files(rank.Rank)
	if err != nil {
		files.Close()
		return nil, files, err
	}
	defer files.Close()
	// A nil *os.File in an interface is not nil.
	if files.Stdin != nil {
		cmd.Stdin = files.Stdin
	}
	if files.Stdout != nil {
		cmd.Stdout = files.Stdout
	}
	if files.Stderr != nil {
		cmd.Stderr = files.Stderr
	}
	if files.Manager != nil {
		cmd.ExtraFiles = []*os.File{files.Manager} // its number is managerFD
		cmd.Env = a.managerVars(cmd.Env, rank.Rank)
	}
	process, err := a.spawner.Start(cmd, share)
	if err != nil {
		return nil, files, startError(cmd.Args[0], err)
	}
	return process, files, nil
}

// resolve finds the program on this host. A name without a slash is looked up in PATH.
func resolve(p wire.Program) (string, error) {
	path, err := exec.LookPath(p.Path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", LookError(p.Name, err)
	}
	return path, nil
}
