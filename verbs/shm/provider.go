//go:build linux

package shm

import (
	"context"
	"fmt"
	"os"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// deviceName names the only device.
const deviceName = "shm0"

// Config sizes the control memfd of each context. It is sparse: unused parts
// cost address space only. Zero values take the defaults; peers need not agree.
type Config struct {
	MaxQPs    int // 1024; at most 4096
	MaxMRs    int // 16384
	RingBytes int // 64 KiB per QP; a power of two from 4 KiB to 16 MiB
	// NoCopies takes it that the system refuses copies between processes.
	NoCopies bool
}

// These are the limits of Config.
const (
	maxQPs       = 64 * 64 // doorbell bits: 64 words under one summary word
	maxMRs       = 1 << 20
	minRingBytes = 4 << 10
	maxRingBytes = 16 << 20
)

// New returns the provider for ranks of this host.
func New(cfg Config) driver.Provider { return provider{cfg.withDefaults()} }

// withDefaults replaces zeros by defaults.
func (c Config) withDefaults() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.MaxQPs, 1024)
	set(&c.MaxMRs, 16384)
	set(&c.RingBytes, 64<<10)
	return c
}

// check returns ErrInvalid for a number out of its bounds.
func (c Config) check() error {
	switch {
	case c.MaxQPs < 1 || c.MaxQPs > maxQPs:
		return fmt.Errorf("shm: %w: MaxQPs %d, want 1 to %d", driver.ErrInvalid, c.MaxQPs, maxQPs)
	case c.MaxMRs < 1 || c.MaxMRs > maxMRs:
		return fmt.Errorf("shm: %w: MaxMRs %d, want 1 to %d", driver.ErrInvalid, c.MaxMRs, maxMRs)
	case !validRing(c.RingBytes):
		return fmt.Errorf("shm: %w: RingBytes %d, want a power of two from %d to %d",
			driver.ErrInvalid, c.RingBytes, minRingBytes, maxRingBytes)
	}
	return nil
}

func validRing(n int) bool { return n >= minRingBytes && n <= maxRingBytes && n&(n-1) == 0 }

// A provider opens contexts with one configuration.
type provider struct{ cfg Config }

func (provider) Name() string { return "shm" }

// Devices lists one device, or none where /proc is missing: peers find each
// other's memory through it.
func (provider) Devices(context.Context) ([]driver.DeviceInfo, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return nil, nil //nolint:nilerr // no /proc means no device
	}
	return []driver.DeviceInfo{deviceInfo()}, nil
}

// deviceInfo returns what this provider can do.
func deviceInfo() driver.DeviceInfo {
	return driver.DeviceInfo{
		Provider:    "shm",
		Name:        deviceName,
		Detail:      "memory shared by the processes of this host (memfd, futex)",
		MaxQPDepth:  maxDepth,
		MaxCQDepth:  1 << 20,
		MaxSegments: 64,
		MaxMessage:  maxMessage,
		MaxInline:   maxMessage,
		Memory:      driver.MemoryInfo{Maps: true},
		Writes:      driver.WriteInfo{Applied: true},
		Atomics:     driver.AtomicInfo{Extended: true, Pairs: atomics.Pairs(), Coherent: true},
		SameHost:    true,
	}
}

// Open implements driver.Provider.
func (p provider) Open(_ context.Context, device string, opts driver.Options) (driver.Context, error) {
	if device != "" && device != deviceName {
		return nil, fmt.Errorf("shm: %w: no device %q, there is only %q", driver.ErrInvalid, device, deviceName)
	}
	if err := p.cfg.check(); err != nil {
		return nil, err
	}
	return openContext(p.cfg, opts)
}
