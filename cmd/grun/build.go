package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/gopgas/gopgas/launcher"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// builds are the locks on executables that were built for this job. They keep
// another grun from replacing one before the ranks run it.
type builds struct{ locks []*os.File }

func (b *builds) release() {
	for _, lock := range b.locks {
		lock.Close()
	}
	b.locks = nil
}

// buildAll replaces every program that is a directory by the executable that
// its Go package makes.
func buildAll(programs []launcher.Program, signals <-chan os.Signal) (*builds, error) {
	b := &builds{}
	built := make(map[string]string)
	for i, p := range programs {
		info, err := os.Stat(p.Path)
		if err != nil || !info.IsDir() {
			continue
		}
		if built[p.Path] == "" {
			if built[p.Path], err = b.build(p.Path, signals); err != nil {
				b.release()
				return nil, err
			}
		}
		programs[i].Path = built[p.Path]
	}
	return b, nil
}

// build compiles the package in dir to a file of the user's cache that is this
// directory's own, so that go build finds it up to date the next time.
func (b *builds) build(dir string, signals <-chan os.Signal) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", &codedError{launcher.ExitInternal, err}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", &codedError{launcher.ExitInternal, fmt.Errorf("where to build %s: %w; set XDG_CACHE_HOME, or build it yourself", dir, err)}
	}
	home := filepath.Join(cache, "grun", fmt.Sprintf("%x", sha256.Sum256([]byte(abs)))[:16])
	lock, err := lockDir(home)
	if err != nil {
		return "", &codedError{launcher.ExitInternal, err}
	}
	b.locks = append(b.locks, lock)
	if term.IsTerminal(int(os.Stderr.Fd())) {
		fmt.Fprintln(os.Stderr, "grun: building", dir)
	}
	target := filepath.Join(home, filepath.Base(abs))
	return target, goBuild(abs, dir, target, lock, signals)
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
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock build cache: %w", err)
	}
	return lock, nil
}

// goBuild runs the go command. It inherits the lock: should grun be killed, it
// finishes, removes its temporary files, and nobody runs half a program.
func goBuild(abs, dir, target string, lock *os.File, signals <-chan os.Signal) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, ".")
	cmd.Dir, cmd.Stderr, cmd.ExtraFiles = abs, os.Stderr, []*os.File{lock}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	done := make(chan error, 1)
	go func() { done <- cmd.Run() }()
	for {
		select {
		case err := <-done:
			return buildError(ctx, dir, err)
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok && (s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP) {
				cancel(&codedError{128 + int(s), fmt.Errorf("%v while building %s", s, dir)})
			}
		}
	}
}

func buildError(ctx context.Context, dir string, err error) error {
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return nil
	case errors.As(err, &failed):
		return &codedError{launcher.ExitNotExecutable, fmt.Errorf("%s does not build", dir)}
	}
	return &codedError{launcher.ExitInternal, fmt.Errorf("build %s: %w", dir, err)}
}
