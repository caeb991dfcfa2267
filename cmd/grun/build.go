//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/launcher"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// longBuild is the time after which grun tells the user that it builds.
const longBuild = 300 * time.Millisecond

// builds holds the locks on executables that were built for this job. They keep
// another grun from replacing one before the ranks run it.
type builds struct{ locks []*os.File }

// release gives the locks up: other runs of grun may remove the executables.
func (b *builds) release() {
	for _, lock := range b.locks {
		lock.Close()
	}
	b.locks = nil
}

// buildAll replaces every program that is a directory or a Go file by the
// executable built from it.
func buildAll(programs []launcher.Program, signals <-chan os.Signal) (*builds, error) {
	b := &builds{}
	built := make(map[string]string)
	for i, p := range programs {
		if !isSource(p.Path) {
			continue
		}
		if built[p.Path] == "" {
			var err error
			if built[p.Path], err = b.build(p.Path, signals); err != nil {
				b.release()
				return nil, err
			}
		}
		programs[i].Path = built[p.Path]
	}
	return b, nil
}

// isSource reports whether grun must build path before it runs.
func isSource(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.IsDir() || strings.HasSuffix(path, ".go") && info.Mode()&0o111 == 0)
}

// build compiles source to a file of the user's cache. Each source has its own
// file, so that go build finds it up to date the next time.
func (b *builds) build(source string, signals <-chan os.Signal) (string, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return "", &codedError{launcher.ExitInternal, err}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &codedError{launcher.ExitInternal, fmt.Errorf("where to build %s: %w; set XDG_CACHE_HOME, or build it yourself", source, err)}
	}
	home := filepath.Join(cache, "grun", fmt.Sprintf("%x", sha256.Sum256([]byte(abs)))[:16])
	lock, err := lockDir(home)
	if err != nil {
		return "", &codedError{launcher.ExitInternal, err}
	}
	b.locks = append(b.locks, lock)
	target := filepath.Join(home, strings.TrimSuffix(filepath.Base(abs), ".go"))
	return target, goBuild(abs, source, target, lock, signals)
}

// lockDir makes a directory and locks it. The lock ends with the last process
// that holds the file.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("build cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("build cache: %w", err)
	}
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock build cache: %w", err)
	}
	return lock, nil
}

// buildCommand returns the go command that makes target of a package's directory
// or a file. The program can use RDMA devices if this machine has some and can
// build for them.
func buildCommand(ctx context.Context, abs, target string, r rdma) *exec.Cmd {
	args := []string{"build", "-o", target}
	if r.usable() {
		args = append(args, "-tags=ibverbs")
	}
	what, dir := ".", abs
	if strings.HasSuffix(abs, ".go") {
		what, dir = abs, filepath.Dir(abs)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, what)...)
	cmd.Dir = dir
	if r.usable() {
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	}
	return cmd
}

// goBuild runs the go command. It inherits the lock: if grun is killed, it
// finishes and removes its temporary files, and no grun runs an incomplete
// program.
func goBuild(abs, source, target string, lock *os.File, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	cmd := buildCommand(ctx, abs, target, theRDMA())
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{lock}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	long := time.After(longBuild)
	for {
		select {
		case err := <-done:
			if err == nil {
				err = runnable(source, target)
			}
			return buildError(ctx, source, err)
		case <-long:
			if term.IsTerminal(int(os.Stderr.Fd())) {
				fmt.Fprintln(os.Stderr, "grun: building", source)
			}
		case sig := <-signals:
			switch s, _ := sig.(syscall.Signal); s {
			case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP:
				cancel(&codedError{128 + int(s), fmt.Errorf("%v while building %s", s, source)})
			case syscall.SIGTSTP: // the terminal stops the go command as well
				if err := launcher.Suspend(); err != nil {
					cancel(&codedError{launcher.ExitInternal, err})
				}
			}
		}
	}
}

// runnable refuses the archive that go build makes of a package other than main.
func runnable(source, target string) error {
	info, err := os.Stat(target)
	if err == nil && info.Mode()&0o111 == 0 {
		err = &codedError{launcher.ExitNotExecutable, fmt.Errorf("%s is not package main: grun runs programs", source)}
	}
	return err
}

// buildError gives the error of a build the exit code of grun. That is the code of the signal which
// canceled ctx, ExitNotExecutable for a source that does not compile, or ExitInternal if go itself
// failed.
func buildError(ctx context.Context, source string, err error) error {
	var failed *exec.ExitError
	var coded *codedError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil, errors.As(err, &coded):
		return err
	case errors.As(err, &failed):
		return &codedError{launcher.ExitNotExecutable, fmt.Errorf("%s does not build", source)}
	}
	return &codedError{launcher.ExitInternal, fmt.Errorf("build %s: %w", source, err)}
}
