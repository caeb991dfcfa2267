package ibv

import (
	"fmt"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the defaults of a Config.
const (
	DefaultPeerTimeout = 30 * time.Second
	DefaultRetryCount  = 6
	DefaultMaxInline   = 512
)

// Config chooses a device and port, and sets its limits. The zero value suits
// most machines.
type Config struct {
	// Device hides all devices but one, such as "mlx5_0". Empty shows all.
	Device string
	// Port is the device's port to use, counted from 1; 0 takes the first one
	// that is active.
	Port int
	// GID chooses the GID at which peers reach this port. It is an index, such
	// as "3", or an address, such as "10.0.0.1" or "fe80::1". Empty takes RoCE
	// v2 before v1, and IPv4 before IPv6.
	GID string
	// MTU bounds the bytes of one packet: 256, 512, 1024, 2048 or 4096. 0 takes
	// the port's active MTU. Two ends use the smaller one.
	MTU int
	// RetryCount is the number of times that the device sends a packet again, 1
	// to 6. 0 means DefaultRetryCount. 7 is refused: some devices then retry
	// forever.
	RetryCount int
	// PeerTimeout bounds how long a peer may show no sign of life where
	// Attr.Timeout is 0. 0 means DefaultPeerTimeout. The device sends a lost
	// packet again after this time divided by RetryCount+1.
	PeerTimeout time.Duration
	// MaxInline is the number of bytes of inline data to request from the device. The device may
	// grant less. 0 means DefaultMaxInline, a negative number none.
	MaxInline int
	// ServiceLevel and TrafficClass mark packets for the network's priorities,
	// where lossless Ethernet requires it.
	ServiceLevel, TrafficClass uint8
}

// normalize checks c and fills in the defaults.
func (c Config) normalize() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return Config{}, fmt.Errorf("%w: ibv: %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
	}
	if c.Port < 0 || c.Port > 255 {
		return bad("port %d, ports count from 1 and 0 takes the first active one", c.Port)
	}
	if c.MTU != 0 && mtuCode(c.MTU) == 0 {
		return bad("MTU %d, it is one of 256, 512, 1024, 2048, 4096", c.MTU)
	}
	if c.RetryCount < 0 || c.RetryCount > 6 {
		return bad("retry count %d, it is 1 to 6: with 7 some devices never give up", c.RetryCount)
	}
	if c.PeerTimeout < 0 {
		return bad("peer timeout %v is negative", c.PeerTimeout)
	}
	if c.ServiceLevel > 15 {
		return bad("service level %d, it is 0 to 15", c.ServiceLevel)
	}
	if c.RetryCount == 0 {
		c.RetryCount = DefaultRetryCount
	}
	if c.PeerTimeout == 0 {
		c.PeerTimeout = DefaultPeerTimeout
	}
	if c.MaxInline == 0 {
		c.MaxInline = DefaultMaxInline
	}
	return c, nil
}

// mtuCode returns the code of an MTU in enum ibv_mtu, or 0 for an MTU that does
// not exist.
func mtuCode(bytes int) uint8 {
	for code := uint8(1); code <= maxMTUCode; code++ {
		if mtuBytes(code) == bytes {
			return code
		}
	}
	return 0
}

func mtuBytes(code uint8) int { return 128 << code }

// maxMTUCode is the code of 4096 bytes.
const maxMTUCode = 5

// The device's retry timer lasts 4.096 us times two to the code, codes 1 to 31.
const (
	timerUnit      = 4096 * time.Nanosecond
	minTimeoutCode = 1
	maxTimeoutCode = 31
)

// timeoutCode returns the code of the shortest sufficient retry timer. With it,
// the first try and all retries together last at least total.
func timeoutCode(total time.Duration, retries int) uint8 {
	each := total / time.Duration(retries+1)
	for code := uint8(minTimeoutCode); code < maxTimeoutCode; code++ {
		if timerUnit<<code >= each {
			return code
		}
	}
	return maxTimeoutCode
}
