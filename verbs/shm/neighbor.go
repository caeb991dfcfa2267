//go:build linux

package shm

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A neighbor reaches the memory of a peer's context without a QP.
type neighbor struct {
	peer *peer
	bell *wait.Bell
}

// Address returns an address without a QP: its nonce is 0, which no QP has.
func (c *Context) Address() []byte {
	a := c.where()
	a.receives = 1 // the least that decodeAddress takes
	return a.encode()
}

// where returns what the addresses of all QPs of this context have in common.
func (c *Context) where() *address {
	bellFD, bellOffset, _ := c.bell.Location()
	return &address{
		pid: uint32(c.pid), fd: uint32(c.control.FD()), inode: c.inode, token: c.token,
		mrs: uint32(c.cfg.MaxMRs), ring: uint32(c.cfg.RingBytes),
		bellInode: c.bellInode, bellFD: uint32(bellFD), bellOffset: uint64(bellOffset),
	}
}

// Neighbor maps the control memfd of the context with an address. It stores nothing there.
func (c *Context) Neighbor(_ context.Context, text []byte) (driver.Mapper, error) {
	addr, err := decodeAddress(text)
	if err != nil {
		return nil, err
	}
	p, bell, err := c.peerWith(addr)
	if err != nil {
		return nil, fmt.Errorf("shm: neighbor: %w", err)
	}
	if p.dead.Load() {
		return nil, fmt.Errorf("shm: neighbor: %w: process %d has ended", driver.ErrLost, addr.pid)
	}
	return &neighbor{p, bell}, nil
}

// Map returns the mapped memory of the peer, without a copy.
func (n *neighbor) Map(_ context.Context, remote driver.RemoteAddr, size int, access driver.Access) ([]byte, error) {
	return n.peer.resolve(remote, uint64(size), access&remoteRights)
}

// PeerBell returns the peer's bell.
func (n *neighbor) PeerBell() wait.Ringer { return n.bell }
