//go:build !linux

package memory

import (
	"errors"
	"fmt"
	"net"
	goruntime "runtime"

	"github.com/gopgas/gopgas/verbs/driver"
)

// errSystem says that only Linux has memfds, and device-dax and PCI memory as files. Heap
// memory is everywhere.
var errSystem = fmt.Errorf("memory: memory that processes share, or of devices, needs Linux, and this is %s: %w", goruntime.GOOS, errors.ErrUnsupported)

// A Memfd has no values here.
type Memfd struct{}

// NewMemfd returns an error.
func NewMemfd(string, int64) (*Memfd, error) { return nil, errSystem }

// Share has no Memfd to change.
func (*Memfd) Share(*Reservations) {}

// Commit returns an error.
func (*Memfd) Commit(_, _ int64) error { return errSystem }

// Punch returns an error.
func (*Memfd) Punch(_, _ int64) error { return errSystem }

// Memory returns none.
func (*Memfd) Memory(_, _ int64) driver.Memory { return driver.Memory{FD: -1} }

// Bytes returns none.
func (*Memfd) Bytes() []byte { return nil }

// Size returns 0.
func (*Memfd) Size() int64 { return 0 }

// FD returns no descriptor.
func (*Memfd) FD() int { return -1 }

// Close has nothing to close.
func (*Memfd) Close() error { return nil }

// Reservations are nil here.
type Reservations struct{}

// NewReservations returns an error.
func NewReservations(int) (*Memfd, error) { return nil, errSystem }

// OpenReservations returns an error.
func OpenReservations(string, int) (*Reservations, error) { return nil, errSystem }

// Publish returns an error.
func (*Reservations) Publish(int, []byte) error { return errSystem }

// Card returns no card.
func (*Reservations) Card(int) []byte { return nil }

// Close has nothing to close.
func (*Reservations) Close() error { return nil }

// OpenDevice returns an error.
func OpenDevice(string) (driver.Memory, error) { return driver.Memory{}, errSystem }

// CloseDevice has nothing to close.
func CloseDevice(driver.Memory) error { return nil }

// NewHuge returns an error.
func NewHuge(int64) (driver.Memory, error) { return driver.Memory{}, errSystem }

// SendDescriptor returns an error.
func SendDescriptor(*net.UnixConn, int) error { return errSystem }

// ReceiveDescriptor returns an error.
func ReceiveDescriptor(*net.UnixConn) (int, error) { return -1, errSystem }

// OpenDescriptor returns an error.
func OpenDescriptor(int) (driver.Memory, error) { return driver.Memory{}, errSystem }

// Duplicate returns an error.
func Duplicate(int) (int, error) { return -1, errSystem }
