//go:build !linux

package runtime

import (
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/verbs/driver"
)

// betweenProcesses returns an error: the providers between processes are made of Linux's
// system calls.
func betweenProcesses() error { return &PlatformError{"a job of several processes"} }

// makeWide returns an error, as betweenProcesses does.
func (o *options) makeWide(name string, _ bootstrap.Env) (driver.Provider, error) {
	return nil, &PlatformError{"provider " + name}
}

// coreMask returns nil: the mask is unknown.
func coreMask() []uint64 { return nil }

// memorySize returns 0: the size is unknown.
func memorySize() int64 { return 0 }
