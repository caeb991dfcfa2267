package runtime

import (
	"errors"
	"fmt"
	goruntime "runtime"
)

// A PlatformError reports that this system lacks what a call needs. errors.Is finds
// errors.ErrUnsupported. README.md has a table of systems.
type PlatformError struct{ Feature string }

// Error returns the missing feature, the system and a way out.
func (e *PlatformError) Error() string {
	return fmt.Sprintf("%s needs Linux, and this is %s/%s: run all ranks in one process by runtime.RunLocal, or run the program on Linux, such as in a container",
		e.Feature, goruntime.GOOS, goruntime.GOARCH)
}

// Unwrap returns errors.ErrUnsupported.
func (*PlatformError) Unwrap() error { return errors.ErrUnsupported }
