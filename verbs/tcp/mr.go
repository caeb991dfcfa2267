//go:build linux

package tcp

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A region is registered memory. Its key has 127 random bits: only peers that were told
// the key can name the region. A wrong key breaks the queue pair that used it.
type region struct {
	dev     *device
	access  driver.Access
	key     driver.Key
	landing bool // its owner replaces its memory

	extent                // its memory; dev.regionMu guards mem
	behind driver.Extents // further memory
	made   []*extent      // of behind; dev.token guards it

	// dev.regionMu guards the fields below.
	addr   uint64
	closed bool
}

// An extent is memory whose addresses follow one another.
type extent struct {
	mem    []byte
	demand driver.Demand // dev.token guards it
}

// addrBase keeps remote addresses as well aligned as the memory itself, and hides the
// memory's own address.
const addrBase = 4096

func newKey() driver.Key {
	var b [16]byte
	rand.Read(b[:])
	return driver.Key{Hi: binary.LittleEndian.Uint64(b[:]), Lo: binary.LittleEndian.Uint64(b[8:]) | 1}
}

// RegMR gives peers that know the key the rights in access. It is local and pins no
// memory.
func (d *device) RegMR(_ context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	r := &region{dev: d, extent: extent{mem.Bytes, mem.Demand}, behind: mem.Behind, access: access, key: newKey()}
	r.addr = addrBase + position(mem.Bytes)%addrBase
	return r, d.enter(r)
}

// enter puts a region into service.
func (d *device) enter(r *region) error {
	d.regionMu.Lock()
	defer d.regionMu.Unlock()
	if d.regions == nil {
		return driver.ErrClosed
	}
	d.regions[r.key] = r
	return nil
}

func (r *region) Addr() uint64     { return r.addr }
func (r *region) LKey() driver.Key { return r.key }
func (r *region) RKey() driver.Key { return r.key }

// Close invalidates the key. When it returns, no request of a peer touches the memory
// any more. It is idempotent.
func (r *region) Close() error {
	d := r.dev
	d.regionMu.Lock()
	known := !r.closed
	r.closed = true
	delete(d.regions, r.key)
	d.regionMu.Unlock()
	if known {
		d.forget(r)
	}
	return nil
}

// forget ends all use of the memory that r had.
func (d *device) forget(r *region) {
	for _, q := range d.queuePairs() {
		q.lock()
		q.forget(r)
		q.unlock()
	}
}

// forget ends the use of r by q and its connection. It copies outgoing bytes aside. It discards
// an incoming payload and refuses the request, unless that is late for a landing.
func (q *qp) forget(r *region) {
	if q.latest == r {
		q.latest = nil
	}
	q.responses.revoke(r)
	l := q.link
	if l == nil {
		return
	}
	l.out.detach(func(p *piece) bool { return p.mr == r })
	if l.in.mr == r {
		l.in.mr, l.in.late = nil, r.landing
		l.in.to.drop()
	}
}

// locate finds the memory that f names, if the peer may use it so. The queue pair keeps the region
// for its next frames, which mostly name the same, but no landing: the memory of a landing changes.
//
// Invariant: a region is out of d.regions before forget takes q's lock. So q.latest is a
// region that Close has not yet returned from.
func (q *qp) locate(f *frame, need driver.Access) (*region, []byte, driver.Status) {
	if r := q.latest; r != nil && r.key == f.key {
		mem, status := r.part(f.addr, int(f.length), need)
		return r, mem, status
	}
	r, mem, status := q.dev.locateAt(f.key, f.addr, int(f.length), need)
	if status == driver.Success && r != nil && !r.landing {
		q.latest = r
	}
	return r, mem, status
}

// locateAt checks key, bounds and rights. It always finds an access of no bytes at the
// zero key. Callers hold a queue pair's lock, which Close takes before it returns.
func (d *device) locateAt(key driver.Key, addr uint64, n int, need driver.Access) (*region, []byte, driver.Status) {
	if n == 0 && key == (driver.Key{}) {
		return nil, nil, driver.Success
	}
	d.regionMu.RLock()
	defer d.regionMu.RUnlock()
	r := d.regions[key]
	if r == nil {
		return nil, nil, driver.RemoteAccess
	}
	mem, status := r.part(addr, n, need)
	return r, mem, status
}

// part returns n bytes of r from an address on, if they are its own and the peer may use
// them so. It has them occupy memory. The caller holds the device's token.
func (r *region) part(addr uint64, n int, need driver.Access) ([]byte, driver.Status) {
	if r.access&need != need || addr < r.addr {
		return nil, driver.RemoteAccess
	}
	off, size := addr-r.addr, uint64(len(r.mem))
	if off < size || n == 0 || r.behind.Count == 0 {
		return r.extent.part(off, n)
	}
	off -= size
	each := uint64(r.behind.Each)
	if off/each >= uint64(r.behind.Count) {
		return nil, driver.RemoteAccess
	}
	e := r.behindAt(int(off / each))
	if e == nil {
		return nil, driver.RemoteOperation
	}
	return e.part(off%each, n)
}

// behindAt returns an extent behind the region's bytes, nil if there is no memory for it.
func (r *region) behindAt(i int) *extent {
	if r.made == nil {
		r.made = make([]*extent, r.behind.Count)
	}
	if r.made[i] == nil {
		mem, err := r.behind.Make(i)
		if err != nil {
			return nil
		}
		r.made[i] = &extent{mem.Bytes, mem.Demand}
	}
	return r.made[i]
}

// part returns n bytes of the extent, if they are its own. It has them occupy memory.
func (e *extent) part(off uint64, n int) ([]byte, driver.Status) {
	size := uint64(len(e.mem))
	if off > size || uint64(n) > size-off {
		return nil, driver.RemoteAccess
	}
	end := off + uint64(n)
	if e.demand.Commit != nil && end > uint64(e.demand.Present) && !e.commit(int(end)) {
		return nil, driver.RemoteOperation
	}
	return e.mem[off:end:end], driver.Success
}

// commit has the first n bytes of e occupy memory, and at least twice as many as before.
func (e *extent) commit(n int) bool {
	n = min(max(n, 2*e.demand.Present), len(e.mem))
	if e.demand.Commit(n) != nil {
		return false
	}
	e.demand.Present = n
	return true
}
