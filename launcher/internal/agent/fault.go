//go:build linux

package agent

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// Exit codes for programs that do not start.
const (
	ExitNotExecutable = 126
	ExitNotFound      = 127
	ExitInternal      = 70 // the launcher itself failed
)

// ErrSpec: the description of the job is impossible.
var ErrSpec = errors.New("invalid job")

// A StartError reports a program that could not be started.
type StartError struct {
	Program string
	Code    int // ExitNotFound, ExitNotExecutable or ExitInternal
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("cannot start %s: %v", e.Program, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// startError classifies the error of a program that was found but did not start.
func startError(program string, err error) *StartError {
	code := ExitNotExecutable
	for _, lack := range []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM} {
		if errors.Is(err, lack) {
			code = ExitInternal
		}
	}
	return &StartError{Program: program, Code: code, Err: err}
}

// LookError classifies the error of a program that was not found.
func LookError(program string, err error) *StartError {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EISDIR) {
		return &StartError{Program: program, Code: ExitNotExecutable, Err: err}
	}
	return &StartError{Program: program, Code: ExitNotFound, Err: err}
}

// Remedy adds to an error for want of file descriptors what to do about it. It returns all other errors as they are.
func Remedy(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w; raise ulimit -n", err)
	case errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w; raise the limit of the system (sysctl fs.file-max)", err)
	}
	return err
}

// faultOf turns an error into its form on the wire.
func faultOf(err error) *wire.Fault {
	var start *StartError
	if errors.As(err, &start) {
		return &wire.Fault{Program: start.Program, Code: start.Code, Text: Remedy(start.Err).Error()}
	}
	return &wire.Fault{Code: ExitInternal, Text: Remedy(err).Error()}
}

// ErrorOf is the error of a fault on a host; host is "" for grun's own.
func ErrorOf(f *wire.Fault, host string) error {
	if f == nil {
		f = &wire.Fault{Code: ExitInternal, Text: "unknown error"}
	}
	err := errors.New(f.Text)
	if host != "" {
		err = fmt.Errorf("host %s: %w", host, err)
	}
	switch {
	case f.Program == "":
		return err
	case host != "" && f.Code == ExitNotFound:
		err = fmt.Errorf("%w; put it there, or give --stage", err)
	}
	return &StartError{Program: f.Program, Code: f.Code, Err: err}
}
