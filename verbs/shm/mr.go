//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

const remoteRights = driver.RemoteWrite | driver.RemoteRead | driver.RemoteAtomic

// MR is a registration: a line in the MR table.
type MR struct {
	ctx    *Context
	key    driver.Key
	addr   uint64
	mem    []byte        // of heap memory that peers reach, else nil
	access driver.Access // of peers to mem
	closed atomic.Bool
}

// keyLo packs the Lo half of a key; Hi is random:
//
//	63           32 31            0
//	+--------------+---------------+
//	|  generation  |  entry + 1    |
//	+--------------+---------------+
func keyLo(index, generation uint32) uint64 { return uint64(generation)<<32 | uint64(index+1) }

// keyIndex returns the entry that a key names; a zero key gives one out of
// range.
func keyIndex(lo uint64) uint32 { return uint32(lo) - 1 }

// mrTable lists the free entries. Precondition of its methods: Context.mu is
// held.
type mrTable struct {
	limit       int
	fresh       uint32
	free        []uint32 // oldest first
	generations []uint32 // of entries below fresh
	committed   int64    // bytes of the control memfd
}

// take returns a free entry, the oldest first, and its next generation. It commits memory for entries
// that were never used. With all entries in use it returns ErrUnsupported.
func (t *mrTable) take(control *memory.Memfd) (index, generation uint32, err error) {
	if len(t.free) > 0 {
		index, t.free = t.free[0], t.free[1:]
		t.generations[index]++
		return index, t.generations[index], nil
	}
	if int(t.fresh) >= t.limit {
		return 0, 0, fmt.Errorf("shm: %w: all %d registrations of the device are in use; register larger regions",
			driver.ErrUnsupported, t.limit)
	}
	if need := int64(t.fresh+1) * entrySize; need > t.committed {
		if err := control.Commit(tableOffset+t.committed, headerSize); err != nil {
			return 0, 0, err
		}
		t.committed += headerSize
	}
	index = t.fresh
	t.fresh++
	t.generations = append(t.generations, 1)
	return index, 1, nil
}

// RegMR enters mem into the table. Peers map a sealed memfd. They reach heap memory as heap.go
// says.
func (c *Context) RegMR(_ context.Context, mem driver.Memory, access driver.Access) (driver.MR, error) {
	e := region{length: uint64(len(mem.Bytes)), access: access & remoteRights}
	heap := e.access != 0 && mem.Kind == driver.KindHeap
	if e.access != 0 && !heap && !mem.Kind.Mappable() {
		return nil, &driver.KindError{Kind: mem.Kind, Provider: "shm"}
	}
	if heap {
		e.fd, e.inode, e.offset = heapFD, addressOf(c.control.Bytes()), addressOf(mem.Bytes)
	} else if e.access != 0 {
		if err := e.locate(mem); err != nil {
			return nil, fmt.Errorf("shm: registering %d bytes: %w", len(mem.Bytes), err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("shm: %w", driver.ErrClosed)
	}
	index, generation, err := c.table.take(c.control)
	if err != nil {
		return nil, err
	}
	key := driver.Key{Hi: randomWord(), Lo: keyLo(index, generation)}
	m := &MR{ctx: c, key: key, addr: e.offset}
	if heap {
		m.mem, m.access = mem.Bytes, e.access
		c.admit(m)
	}
	e.store(entryAt(c.control.Bytes(), index), key)
	return m, nil
}

// NewLanding returns ErrUnsupported: peers map memory.
func (c *Context) NewLanding(context.Context) (driver.Landing, error) {
	return nil, fmt.Errorf("shm: landing: %w", driver.ErrUnsupported)
}

// region is the content of an entry of the table. Heap memory has the descriptor heapFD, the
// address of the owner's control memory as its inode, and its own address as its offset.
type region struct {
	fd, inode, offset, length uint64
	access                    driver.Access
}

// locate finds the memfd and offset of mem, by which a peer finds it.
func (r *region) locate(mem driver.Memory) error {
	inode, err := memory.Sealed(mem.FD, mem.Offset, int64(len(mem.Bytes)))
	if err != nil {
		return err
	}
	r.fd, r.inode, r.offset = uint64(mem.FD), inode, uint64(mem.Offset)
	return nil
}

// store fills an entry that no valid key names, and makes it valid last.
func (r *region) store(e *entry, key driver.Key) {
	e.secret.Store(key.Hi)
	e.fd.Store(r.fd)
	e.inode.Store(r.inode)
	e.offset.Store(r.offset)
	e.length.Store(r.length)
	e.access.Store(uint64(r.access))
	e.key.Store(key.Lo)
}

// load reads an entry that its owner may change. ok is true if the entry was
// valid for key all the time.
func (r *region) load(e *entry, key driver.Key) (ok bool) {
	if e.key.Load() != key.Lo || e.secret.Load() != key.Hi {
		return false
	}
	*r = region{fd: e.fd.Load(), inode: e.inode.Load(), offset: e.offset.Load(), length: e.length.Load(),
		access: driver.Access(e.access.Load()) & remoteRights}
	return e.key.Load() == key.Lo
}

// Addr returns the offset in the memfd, or the address of heap memory. Both are aligned as the
// memory is.
func (m *MR) Addr() uint64 { return m.addr }

// LKey returns the same key as RKey.
func (m *MR) LKey() driver.Key { return m.key }

// RKey returns the key for peers.
func (m *MR) RKey() driver.Key { return m.key }

// Close makes the key invalid everywhere, and waits for the requests that peers
// are executing. When it returns nil, no request changes the memory any more. With an error, one of a
// stopped process may: heap memory then stays as long as the context, so that nothing else lies there.
func (m *MR) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	c := m.ctx
	index := keyIndex(m.key.Lo)
	entryAt(c.control.Bytes(), index).key.Store(0) // partner: peer.resolve of the poster
	if m.mem != nil {
		c.expel(m)
	}
	var errs []error
	for _, e := range c.executions() {
		errs = append(errs, c.quiesce(c.life, e))
	}
	err := errors.Join(errs...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && m.mem != nil {
		c.kept = append(c.kept, m.mem)
	}
	c.table.free = append(c.table.free, index)
	return err
}
