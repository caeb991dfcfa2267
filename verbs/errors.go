package verbs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopgas/gopgas/verbs/driver"
)

// ErrInUse is the error to which an [InUseError] unwraps.
var ErrInUse = errors.New("still in use")

// OpError names the call that failed, its provider, device and queue pair, and
// the cause. errors.Is reaches the cause: driver.ErrQueueFull, driver.ErrState
// and so on.
type OpError struct {
	Op       string // the call, such as "post send"
	Provider string
	Device   string
	QP       uint32 // 0 where no queue pair is concerned
	Index    int    // the work request that was refused, -1 where none is concerned
	Err      error
}

// Error returns the call, the provider, the device, the queue pair, the request and the cause.
func (e *OpError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "verbs: %s on %s", e.Op, e.Provider)
	if e.Device != "" {
		fmt.Fprintf(&b, "/%s", e.Device)
	}
	if e.QP != 0 {
		fmt.Fprintf(&b, " QP %d", e.QP)
	}
	if e.Index >= 0 {
		fmt.Fprintf(&b, ", request %d", e.Index)
	}
	return b.String() + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// InUseError refuses to close an object that regions or queue pairs still need.
type InUseError struct {
	Object string // "PD" or "CQ"
	MRs    int    // regions that are registered
	QPs    int    // queue pairs that exist
}

// Error returns the object and the numbers of regions and queue pairs that use it.
func (e *InUseError) Error() string {
	return fmt.Sprintf("%s still in use by %d MRs and %d QPs: close those first", e.Object, e.MRs, e.QPs)
}

// Unwrap returns ErrInUse.
func (e *InUseError) Unwrap() error { return ErrInUse }

// fail wraps the error of a call that concerns no work request.
func (c *Context) fail(op string, qp uint32, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Provider: c.info.Provider, Device: c.info.Name, QP: qp, Index: -1, Err: err}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrAccess, fmt.Sprintf(format, args...))
}

func stateError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", driver.ErrState, fmt.Sprintf(format, args...))
}
