//go:build !ibverbs

package ibv

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Built reports whether this program can use RDMA devices.
const Built = false

// New returns a provider without devices: this program was built without the
// tag ibverbs.
func New(Config) driver.Provider { return absent{} }

// An absent is the provider of a build without libibverbs.
type absent struct{}

func (absent) Name() string { return "ibv" }

func (absent) Devices(context.Context) ([]driver.DeviceInfo, error) { return nil, nil }

func (absent) Open(context.Context, string, driver.Options) (driver.Context, error) {
	return nil, fmt.Errorf("%w: ibv: this program was built without tag ibverbs; build it with `-tags ibverbs`",
		driver.ErrNoDevice)
}
