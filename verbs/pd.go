package verbs

import (
	"context"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A PD is a protection domain. Providers know none: this package holds the
// local keys of one PD apart from those of another.
type PD struct {
	ctx *Context

	mu     sync.Mutex // serializes changes of the fields below
	closed bool
	live   int // queue pairs
	mrs    keys
}

// RegMR registers mem with the rights in access. mem stays the caller's to
// use and must stay valid until the MR is closed. Rights that let a peer change
// the memory need LocalWrite too. It commits memory with a Demand, unless the device does so later. Memory
// with extents is for devices with [driver.MemoryInfo.OnDemand]: others return ErrUnsupported. It is local.
func (p *PD) RegMR(ctx context.Context, mem Memory, access Access) (*MR, error) {
	const op = "register memory"
	if len(mem.Bytes) == 0 {
		return nil, p.ctx.fail(op, 0, invalid("no memory to register"))
	}
	if access&^AllAccess != 0 {
		return nil, p.ctx.fail(op, 0, invalid("unknown rights %#x", uint8(access)))
	}
	if access&(RemoteWrite|RemoteAtomic) != 0 && access&LocalWrite == 0 {
		return nil, p.ctx.fail(op, 0, invalid("%v needs local-write as well", access))
	}
	if b := mem.Behind; b.Count > 0 && (b.Each <= 0 || b.Make == nil) {
		return nil, p.ctx.fail(op, 0, invalid("%d extents of %d bytes that cannot be made", b.Count, b.Each))
	}
	if p.ctx.closed.Load() {
		return nil, p.ctx.fail(op, 0, driver.ErrClosed)
	}
	if mem.Behind.Count > 0 && !p.ctx.info.Memory.OnDemand {
		return nil, p.ctx.fail(op, 0, fmt.Errorf("%w: extents", driver.ErrUnsupported))
	}
	if mem.Demand.Commit != nil && !p.ctx.info.Memory.OnDemand {
		if err := mem.Demand.Commit(len(mem.Bytes)); err != nil {
			return nil, p.ctx.fail(op, 0, err)
		}
	}
	mutant.Hesitate(mutant.Call)
	drv, err := p.ctx.drv.RegMR(ctx, mem, access)
	if err != nil {
		return nil, p.ctx.fail(op, 0, err)
	}
	mr := &MR{pd: p, drv: drv, mem: mem.Bytes, access: access, addr: drv.Addr(), lkey: drv.LKey(), rkey: drv.RKey()}
	if err := p.add(mr); err != nil {
		_ = drv.Close() // the caller learns why there is no region
		return nil, p.ctx.fail(op, 0, err)
	}
	return mr, nil
}

// Close releases the domain, or returns an [InUseError] while it has regions
// or queue pairs. It is idempotent.
func (p *PD) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mrs := p.mrs.live; mrs+p.live > 0 && !p.ctx.closed.Load() {
		return p.ctx.fail("close PD", 0, &InUseError{Object: "PD", MRs: mrs, QPs: p.live})
	}
	p.closed = true
	return nil
}

// add enters mr in the table of regions, unless the domain is closed.
func (p *PD) add(mr *MR) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return driver.ErrClosed
	}
	p.mrs.add(mr)
	return nil
}

func (p *PD) drop(mr *MR) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mrs.drop(mr)
}

// hold counts a queue pair in.
func (p *PD) hold() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return driver.ErrClosed
	}
	p.live++
	return nil
}

func (p *PD) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
}
