//go:build linux

package launcher

import (
	"errors"
	"io"
	"os"
	goruntime "runtime"
	"time"

	"golang.org/x/sys/unix"
)

// foregroundPause is the time between two checks whether the shell has brought
// this process to the foreground. The kernel sends no event for it.
const foregroundPause = 100 * time.Millisecond

// A terminalReader reads the terminal while this process is in its foreground, and
// waits while it is not. Without it the kernel would stop this process (SIGTTIN).
type terminalReader struct {
	terminal *os.File
	quit     <-chan struct{}
}

// readerOf returns a reader of source that the kernel does not stop. One
// goroutine calls it and reads; that goroutine keeps its thread.
func readerOf(source io.Reader, quit <-chan struct{}) io.Reader {
	f, ok := source.(*os.File)
	if !ok || !isTerminal(f) {
		return source
	}
	goruntime.LockOSThread() // for good: the thread ends with the goroutine
	// The kernel does not stop a thread that blocks the signal: read fails with EIO.
	var ttin unix.Sigset_t
	ttin.Val[0] = 1 << (unix.SIGTTIN - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &ttin, nil) != nil {
		return source
	}
	return &terminalReader{f, quit}
}

// Read reads in the foreground. It ends with the terminal or the job.
func (r *terminalReader) Read(p []byte) (int, error) {
	for {
		n, err := r.terminal.Read(p)
		if !errors.Is(err, unix.EIO) || !isTerminal(r.terminal) {
			return n, err
		}
		select {
		case <-r.quit:
			return 0, io.EOF
		case <-time.After(foregroundPause):
		}
	}
}

// isTerminal reports whether f is a terminal, not a file. A terminal that has
// hung up is not.
func isTerminal(f *os.File) bool {
	_, err := terminalState(f)
	return err == nil
}

// stopsOutput reports whether the kernel stops processes in the background that
// write to f (stty tostop).
func stopsOutput(f *os.File) bool {
	state, err := terminalState(f)
	return err == nil && state.Lflag&unix.TOSTOP != 0
}

// terminalState returns the settings of a terminal. Another file is an error, and so is a terminal
// that has hung up.
func terminalState(f *os.File) (state *unix.Termios, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	if ctlErr := raw.Control(func(fd uintptr) { state, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); ctlErr != nil {
		return nil, ctlErr
	}
	return state, err
}
