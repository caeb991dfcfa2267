package tcp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// DeviceName is the one device that the provider has.
const DeviceName = "tcp0"

// DefaultPeerTimeout is how long a peer may show no sign of life.
const DefaultPeerTimeout = 30 * time.Second

// Limits that the device grants.
const (
	maxDepth   = 16 << 10
	maxCQDepth = 1 << 20
	maxInline  = 1 << 20
)

// Config says how the provider meets the network. The zero value serves every
// interface of the host.
type Config struct {
	// Listen is the host name or IP address to bind and to be dialled at. Empty
	// binds all interfaces and offers all of their addresses.
	Listen string
	// PeerTimeout bounds how long a peer that is connecting or connected may
	// show no sign of life; 0 means DefaultPeerTimeout, and an established
	// connection is given two seconds at least. A process that is merely
	// stopped shows one, since its kernel answers for it.
	PeerTimeout time.Duration
}

// New returns the provider. It opens nothing yet.
func New(cfg Config) driver.Provider {
	if cfg.PeerTimeout <= 0 {
		cfg.PeerTimeout = DefaultPeerTimeout
	}
	return &provider{cfg}
}

type provider struct{ cfg Config }

func (p *provider) Name() string { return "tcp" }

func (p *provider) Devices(ctx context.Context) ([]driver.DeviceInfo, error) {
	addrs, err := p.addresses(ctx)
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	return []driver.DeviceInfo{describe(fmt.Sprintf("reachable at %v", addrs))}, nil
}

func describe(detail string) driver.DeviceInfo {
	return driver.DeviceInfo{
		Provider: "tcp", Name: DeviceName, Detail: detail,
		MaxQPDepth: maxDepth, MaxCQDepth: maxCQDepth, MaxSegments: maxSegments,
		MaxMessage: maxMessage, MaxInline: maxInline, LazyInline: true, WholeWrites: true, Landings: true,
		ExtendedAtomics: true, CoherentAtomics: true, AppliedWrites: true, CallingPolls: true,
	}
}

// Open binds the listening socket and starts the device's one goroutine.
func (p *provider) Open(ctx context.Context, name string, opts driver.Options) (driver.Context, error) {
	if name != "" && name != DeviceName {
		return nil, fmt.Errorf("%w: tcp has no device %q, only %q", driver.ErrInvalid, name, DeviceName)
	}
	addrs, err := p.addresses(ctx)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("%w: tcp finds no interface that is up; set Listen", driver.ErrInvalid)
	}
	bind := netip.IPv6Unspecified()
	if p.cfg.Listen != "" {
		bind = addrs[0]
		addrs = addrs[:1]
	}
	fd, port, err := listen(bind)
	if err != nil && p.cfg.Listen == "" { // a kernel without IPv6
		fd, port, err = listen(netip.IPv4Unspecified())
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
	return openDevice(fd, endpoints, p.cfg.PeerTimeout, opts)
}

// addresses lists where peers may dial, the likeliest first.
func (p *provider) addresses(ctx context.Context) ([]netip.Addr, error) {
	if p.cfg.Listen == "" {
		return interfaceAddresses()
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", p.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("tcp: resolving Listen: %w", err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, nil
}

func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("tcp: listing interface addresses: %w", err)
	}
	var outside, loopback []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		switch ip := prefix.Addr().Unmap(); {
		case ip.IsLoopback():
			loopback = append(loopback, ip)
		case !ip.IsLinkLocalUnicast():
			outside = append(outside, ip)
		}
	}
	if len(outside) == 0 {
		return loopback, nil // a host without a network still reaches itself
	}
	return outside[:min(len(outside), maxEndpoints)], nil
}
