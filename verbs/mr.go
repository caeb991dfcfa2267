package verbs

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An MR is a registered memory region.
type MR struct {
	pd         *PD
	drv        driver.MR
	mem        []byte
	access     Access
	addr       uint64
	lkey, rkey Key
	closed     atomic.Bool
}

// Bytes returns the registered memory.
func (m *MR) Bytes() []byte { return m.mem }

// LKey names the region in segments of this PD's queue pairs.
func (m *MR) LKey() Key { return m.lkey }

// RKey names the region to peers.
func (m *MR) RKey() Key { return m.rkey }

// Remote returns the address at which a peer finds the byte at offset. It does
// not check offset: the target checks every access.
func (m *MR) Remote(offset int) RemoteAddr {
	return RemoteAddr{Addr: m.addr + uint64(offset), RKey: m.rkey}
}

// Segment returns the n bytes at offset, for a work request.
func (m *MR) Segment(offset, n int) (Segment, error) {
	if offset < 0 || n < 0 || offset > len(m.mem) || n > len(m.mem)-offset {
		return Segment{}, m.pd.ctx.fail("segment", 0,
			invalid("%d bytes at %d of a region of %d bytes", n, offset, len(m.mem)))
	}
	return Segment{Mem: m.mem[offset : offset+n : offset+n], LKey: m.lkey}, nil
}

// SegmentOf returns mem as a segment, if all of it lies in the region.
func (m *MR) SegmentOf(mem []byte) (seg Segment, ok bool) {
	return Segment{Mem: mem, LKey: m.lkey}, contains(m.mem, mem)
}

// Close deregisters the region: when it returns, no peer reads or writes the
// memory any more, and the keys never become valid again. It is idempotent.
func (m *MR) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.pd.drop(m)
	return m.pd.ctx.fail("deregister memory", 0, m.drv.Close())
}
