//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A neighbor reaches the memory of a peer's context without a QP. It maps the memory in which the peer's bell
// lies. To map registrations by their keys it reads the peer's table, and maps the control memfd for that.
type neighbor struct {
	ctx  *Context
	addr *address
	home []byte
	bell *wait.Bell
	peer atomic.Pointer[peer] // nil until a key is used
}

// A homeID names the memory in which a peer's bell lies.
type homeID struct {
	pid uint32
	memfdID
}

func homeFor(addr *address) homeID {
	return homeID{addr.pid, memfdID{uint64(addr.bellFD), addr.bellInode}}
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

// Neighbor maps the memory of the bell in an address. It stores nothing there.
func (c *Context) Neighbor(_ context.Context, text []byte) (driver.Neighbor, error) {
	addr, err := decodeAddress(text)
	if err != nil {
		return nil, err
	}
	n := &neighbor{ctx: c, addr: addr}
	if addr.bellInode == addr.inode {
		err = n.shareControl()
	} else {
		err = n.mapHome()
	}
	if err != nil {
		return nil, fmt.Errorf("shm: neighbor: %w", err)
	}
	return n, nil
}

// shareControl has n use the control memfd, in which the bell lies, too.
func (n *neighbor) shareControl() error {
	p, err := n.control()
	if err == nil {
		n.home = p.control.Bytes()
		n.bell, err = p.bell(n.addr)
	}
	return err
}

// mapHome maps the memory of the bell.
func (n *neighbor) mapHome() error {
	home, err := n.ctx.homeOf(n.addr)
	if err != nil {
		return err
	}
	bell, err := bounded(home.Bytes(), n.addr.bellOffset, wait.Size)
	if err != nil {
		return fmt.Errorf("bell: %w", err)
	}
	n.home, n.bell = home.Bytes(), wait.NewShared(bell, -1, 0)
	return nil
}

// homeOf maps the memory of the bell in an address, once for the life of this context: a queue pair may have
// mapped it. The inode shows that it is the memory which the address means.
func (c *Context) homeOf(addr *address) (*memory.Imported, error) {
	id := homeFor(addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, driver.ErrClosed
	}
	if home := c.homes[id]; home != nil {
		return home, nil
	}
	if home := c.importedFrom(id); home != nil {
		c.homes[id] = home
		return home, nil
	}
	home, err := c.importer.Import(int(id.pid), int(id.fd), 0)
	switch {
	case errors.Is(err, driver.ErrExhausted):
		return nil, err // an error of this process, not of the peer
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrLost, err)
	case home.Inode() != id.inode:
		err = fmt.Errorf("%w: descriptor %d of process %d is another memfd by now", driver.ErrLost, id.fd, id.pid)
		return nil, errors.Join(err, home.Close())
	}
	c.homes[id] = home
	return home, nil
}

// importedFrom returns the memory with id if it is mapped for a peer in that process, nil if not. Precondition: mu is held.
func (c *Context) importedFrom(id homeID) *memory.Imported {
	for _, p := range c.peers {
		if p.id.pid != id.pid {
			continue
		}
		p.mu.Lock()
		home := p.imports[id.memfdID]
		p.mu.Unlock()
		if home != nil {
			return home
		}
	}
	return nil
}

// control returns the peer, with its control memfd mapped.
func (n *neighbor) control() (*peer, error) {
	if p := n.peer.Load(); p != nil {
		return p, nil
	}
	p, err := n.ctx.peerAt(n.addr)
	if err == nil && p.dead.Load() {
		err = fmt.Errorf("%w: process %d has ended", driver.ErrLost, n.addr.pid)
	}
	if err != nil {
		return nil, err
	}
	n.peer.Store(p)
	return p, nil
}

// Map returns the mapped memory of the peer, without a copy.
func (n *neighbor) Map(_ context.Context, remote driver.RemoteAddr, size int, access driver.Access) ([]byte, error) {
	p, err := n.control()
	if err != nil {
		return nil, fmt.Errorf("shm: neighbor: %w", err)
	}
	return p.resolve(remote, uint64(size), access&remoteRights)
}

// PeerBell returns the peer's bell.
func (n *neighbor) PeerBell() wait.Ringer { return n.bell }

// BellMemory returns the memory in which the peer's bell lies.
func (n *neighbor) BellMemory() []byte { return n.home }
