package verbs

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Address returns the address of the device, by which other processes of this host become its
// neighbors. ok is false where they need a queue pair. Like the address of a queue pair it may
// hold a secret. It is local.
func (c *Context) Address() (address []byte, ok bool) {
	if n, ok := c.drv.(driver.Neighborhood); ok {
		return n.Address(), true
	}
	return nil, false
}

// A Neighbor is a device of another process of this host. This process maps its memory without a
// queue pair.
type Neighbor struct {
	ctx *Context
	drv driver.Neighbor
}

// Neighbor finds the device of an address. It is local: the process that has the device takes no part.
//
// Errors: driver.ErrUnsupported where memory is mapped by queue pairs only, driver.ErrLost where
// the process has ended, unless its memory is mapped already, driver.ErrExhausted where this process lacks descriptors.
func (c *Context) Neighbor(ctx context.Context, address []byte) (*Neighbor, error) {
	const op = "find neighbor"
	n, ok := c.drv.(driver.Neighborhood)
	if !ok {
		return nil, c.fail(op, 0, driver.ErrUnsupported)
	}
	drv, err := n.Neighbor(ctx, address)
	if err != nil {
		return nil, c.fail(op, 0, err)
	}
	return &Neighbor{c, drv}, nil
}

// Map is [QP.Map] for memory of the neighbor.
func (n *Neighbor) Map(ctx context.Context, remote RemoteAddr, length int, access Access) ([]byte, error) {
	return n.ctx.mapBy(ctx, n.drv, 0, remote, length, access)
}

// Bell returns the neighbor's bell. Ring it after a mapped store for which the neighbor may be waiting.
func (n *Neighbor) Bell() wait.Ringer { return n.drv.PeerBell() }

// BellMemory returns the whole memfd in which the neighbor's bell lies. This process maps it with the bell. The
// caller knows where its peer keeps what there.
func (n *Neighbor) BellMemory() []byte { return n.drv.BellMemory() }
