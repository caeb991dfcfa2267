//go:build ibverbs

package ibv

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Built reports whether this program can use RDMA devices.
const Built = true

// New returns the provider. It opens no device.
func New(cfg Config) driver.Provider { return &provider{cfg} }

// A provider opens the devices that its configuration allows.
type provider struct{ cfg Config }

func (p *provider) Name() string { return "ibv" }

// Devices lists the devices that have a port to use. It opens each for a moment.
func (p *provider) Devices(context.Context) ([]driver.DeviceInfo, error) {
	cfg, err := p.cfg.normalize()
	if err != nil {
		return nil, err
	}
	names, err := deviceNames(cfg)
	if err != nil {
		return nil, err
	}
	var infos []driver.DeviceInfo
	for _, name := range names {
		hw, err := openHardware(name, cfg)
		if err != nil {
			continue // no port is up, or the device may not be opened: Open returns the cause
		}
		infos = append(infos, hw.info())
		if err := hw.close(); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

// deviceNames returns the devices that libibverbs finds. A kernel without RDMA has none.
func deviceNames(cfg Config) (names []string, err error) {
	err = eachDevice(func(_ deviceHandle, name string) bool {
		if cfg.Device == "" || cfg.Device == name {
			names = append(names, name)
		}
		return true
	})
	if errors.Is(err, errNoKernelSupport) {
		return nil, nil
	}
	return names, wrap(err, "listing devices")
}

// Open opens the device, the first one with an active port for an empty name, and starts the
// two goroutines that read its events.
func (p *provider) Open(_ context.Context, name string, opts driver.Options) (driver.Context, error) {
	cfg, err := p.cfg.normalize()
	if err != nil {
		return nil, err
	}
	names, err := deviceNames(cfg)
	if err != nil {
		return nil, err
	}
	var unusable []error
	for _, known := range names {
		if known != name && name != "" {
			continue
		}
		hw, err := openHardware(known, cfg)
		if err == nil {
			return newDevice(hw, cfg, opts)
		}
		unusable = append(unusable, err)
	}
	if unusable != nil {
		return nil, errors.Join(unusable...)
	}
	if want := cmp.Or(name, cfg.Device); want != "" {
		return nil, fmt.Errorf("%w: ibv: no device %q among %q; `ls %s` shows those of this host", driver.ErrNoDevice, want, Present(), sysClass)
	}
	return nil, fmt.Errorf("%w: ibv: `ls %s` shows no RDMA device", driver.ErrNoDevice, sysClass)
}
