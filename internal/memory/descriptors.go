package memory

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A DescriptorError reports that a process, or its whole host, has no file
// descriptors left. errors.Is finds driver.ErrExhausted and the system's error.
type DescriptorError struct {
	Limit uint64 // of this process; 0: the host has none left
	Err   error
}

func (e *DescriptorError) Error() string {
	if e.Limit == 0 {
		return "no file descriptors left on this host: raise the limit of the system (sysctl fs.file-max)"
	}
	return fmt.Sprintf("no file descriptors left, limit %d: raise ulimit -n", e.Limit)
}

// Unwrap returns the errors that errors.Is finds.
func (e *DescriptorError) Unwrap() []error { return []error{driver.ErrExhausted, e.Err} }

// Descriptors turns an error for want of file descriptors into a *DescriptorError,
// and returns other errors unchanged.
func Descriptors(err error) error {
	var known *DescriptorError
	switch {
	case errors.As(err, &known):
	case errors.Is(err, unix.ENFILE):
		return &DescriptorError{Err: err}
	case errors.Is(err, unix.EMFILE):
		limit := unix.Rlimit{Cur: 1}
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // it does not fail on Linux
		return &DescriptorError{Limit: max(limit.Cur, 1), Err: err}
	}
	return err
}
