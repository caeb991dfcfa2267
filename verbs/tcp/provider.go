//go:build linux

package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// DeviceName names the provider's only device.
const DeviceName = "tcp0"

// DefaultPeerTimeout bounds how long a peer may show no sign of life.
const DefaultPeerTimeout = 30 * time.Second

// These are the limits of the device.
const (
	maxDepth   = 16 << 10
	maxCQDepth = 1 << 20
	maxInline  = 1 << 20
)

// Config chooses the address at which the provider listens, and its timeout. The zero
// value serves every interface of the host.
type Config struct {
	// Listen names the address at which the device listens. It is an IPv4 or IPv6
	// address of this host, a subnet such as 10.1.0.0/16, or an interface such as eth0.
	// For the latter two, the device takes their first address. Without such an address
	// Open fails with an *InterfaceError. Empty binds all interfaces and offers their
	// addresses.
	Listen string
	// PeerTimeout bounds how long a peer that is connecting or connected may show no
	// sign of life. 0 means DefaultPeerTimeout. An established connection has at least
	// two seconds. A stopped process still shows a sign of life, since its kernel
	// acknowledges probes.
	PeerTimeout time.Duration
	// Streams bounds the number of queue pairs that share a connection at each end. The
	// device that dials uses its own bound. 0 means DefaultStreams.
	Streams int
	// TLS encrypts and authenticates all connections, by TLS 1.3. Both devices need it.
	// A device uses it as a client and as a server, so it must make each end check the
	// other. nil means no TLS. The device does not change it.
	TLS *tls.Config
}

// DefaultStreams is the number of queue pairs at each end that share a connection.
const DefaultStreams = 2

// New returns the provider. It opens no device.
func New(cfg Config) driver.Provider {
	if cfg.PeerTimeout <= 0 {
		cfg.PeerTimeout = DefaultPeerTimeout
	}
	if cfg.Streams <= 0 {
		cfg.Streams = DefaultStreams
	}
	return &provider{cfg}
}

// A provider opens devices with one configuration.
type provider struct{ cfg Config }

func (p *provider) Name() string { return "tcp" }

func (p *provider) Devices(context.Context) ([]driver.DeviceInfo, error) {
	addrs, err := p.addresses()
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	return []driver.DeviceInfo{describe(fmt.Sprintf("reachable at %v", addrs))}, nil
}

// describe returns what this provider can do. detail names the addresses.
func describe(detail string) driver.DeviceInfo {
	return driver.DeviceInfo{
		Provider: "tcp", Name: DeviceName, Detail: detail,
		MaxQPDepth: maxDepth, MaxCQDepth: maxCQDepth, MaxSegments: maxSegments,
		MaxMessage: maxMessage, MaxInline: maxInline, Blocks: true,
		Memory:       driver.MemoryInfo{Landings: true, OnDemand: true},
		Writes:       driver.WriteInfo{LazyInline: true, Applied: true, Whole: true},
		Atomics:      driver.AtomicInfo{Extended: true, Pairs: atomics.Pairs(), Coherent: true},
		CallingPolls: true, Apart: true, Establishes: true,
	}
}

// Open binds the listening socket and starts the device's one goroutine.
func (p *provider) Open(_ context.Context, name string, opts driver.Options) (driver.Context, error) {
	if name != "" && name != DeviceName {
		return nil, fmt.Errorf("%w: tcp has no device %q, only %q", driver.ErrInvalid, name, DeviceName)
	}
	addrs, err := p.addresses()
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: tcp finds no interface that is up; set Listen", driver.ErrInvalid)
	}
	bind := netip.IPv6Unspecified()
	if p.cfg.Listen != "" {
		bind = addrs[0]
	}
	fd, port, err := listen(bind)
	if err != nil && p.cfg.Listen == "" { // a kernel without IPv6
		fd, port, err = listen(netip.IPv4Unspecified())
	}
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		have, err := nics()
		return nil, errors.Join(notHere(p.cfg.Listen, have), err)
	}
	if exhausted(err) {
		return nil, fmt.Errorf("tcp: listening on %v: %w", bind, memory.Descriptors(err))
	}
	if err != nil {
		return nil, fmt.Errorf("tcp: listening on %v: %w; set Listen to an address of this host", bind, err)
	}
	endpoints := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		endpoints[i] = netip.AddrPortFrom(a, port)
	}
	return openDevice(fd, endpoints, p.cfg, opts)
}

// addresses lists the addresses at which peers may dial.
func (p *provider) addresses() ([]netip.Addr, error) {
	if ip, err := choose(p.cfg.Listen, nil); err == nil { // an address: the interfaces, which cost each rank some system calls, do not matter
		return []netip.Addr{ip}, nil
	}
	have, err := nics()
	if err != nil || p.cfg.Listen == "" {
		return reachable(have), err
	}
	ip, err := choose(p.cfg.Listen, have)
	return []netip.Addr{ip}, err
}
