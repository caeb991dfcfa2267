package loop

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// mr is a region of one rank's memory.
type mr struct {
	table  *keyTable
	slot   uint32
	key    driver.Key
	addr   uint64
	mem    []byte
	access driver.Access

	// A peer holds busy for reading while it accesses the memory; no peer does after
	// Close.
	busy   sync.RWMutex
	closed bool
}

func (m *mr) Addr() uint64     { return m.addr }
func (m *mr) LKey() driver.Key { return m.key }
func (m *mr) RKey() driver.Key { return m.key }

func (m *mr) Close() error {
	m.table.drop(m)
	m.busy.Lock()
	m.closed = true
	m.busy.Unlock()
	return nil
}

// within returns the n bytes at addr of a region, or nil.
func (m *mr) within(addr uint64, n int) []byte {
	off := addr - m.addr // a smaller addr wraps to a huge offset
	if size := uint64(len(m.mem)); off > size || uint64(n) > size-off {
		return nil
	}
	return m.mem[off : off+uint64(n) : off+uint64(n)]
}

// keyTable finds a rank's regions by key. Peers read it without a lock.
//
// A key looks random. Lo hides slot and generation of the table, Hi is random:
//
//	Lo ^ secret:  63      32 31     0
//	              generation |  slot
//
// The table uses a slot again with the next generation. So the key of a closed
// region never becomes valid again.
type keyTable struct {
	secret uint64
	slots  atomic.Pointer[[]*mr] // copied on change

	mu          sync.Mutex
	generations []uint32
	closed      bool
}

func (t *keyTable) init() {
	t.secret = random()
	t.slots.Store(&[]*mr{})
}

// add gives memory a key of a free slot. Readers take no lock: they load the list, which add replaces.
func (t *keyTable) add(mem []byte, access driver.Access) (*mr, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, driver.ErrClosed
	}
	slots := slices.Clone(*t.slots.Load())
	slot := slices.Index(slots, nil)
	if slot < 0 {
		slot = len(slots)
		slots = append(slots, nil)
		t.generations = append(t.generations, 0)
	}
	t.generations[slot]++
	lo := (uint64(t.generations[slot])<<32 | uint64(slot)) ^ t.secret
	m := &mr{
		table: t, slot: uint32(slot), key: driver.Key{Hi: random() | 1, Lo: lo},
		addr: addressOf(mem), mem: mem, access: access,
	}
	slots[slot] = m
	t.slots.Store(&slots)
	return m, nil
}

// drop makes the key of m invalid. Its slot gets another generation.
func (t *keyTable) drop(m *mr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := slices.Clone(*t.slots.Load())
	if slots[m.slot] == m {
		slots[m.slot] = nil
		t.slots.Store(&slots)
	}
}

// closeAll closes all registrations, and has later ones fail.
func (t *keyTable) closeAll() {
	t.mu.Lock()
	slots := *t.slots.Load()
	t.closed = true
	t.mu.Unlock()
	for _, m := range slots {
		if m != nil {
			_ = m.Close() // cannot fail
		}
	}
}

// open returns the n bytes at remote, if the key is valid, has the right and
// covers them. It keeps the region from closing until the caller calls done.
func (t *keyTable) open(remote driver.RemoteAddr, n int, need driver.Access) (*mr, []byte, error) {
	slots := *t.slots.Load()
	slot := uint32(remote.RKey.Lo ^ t.secret)
	if uint64(slot) >= uint64(len(slots)) || slots[slot] == nil || slots[slot].key != remote.RKey {
		return nil, nil, errBadKey
	}
	m := slots[slot]
	if m.access&need != need {
		return nil, nil, fmt.Errorf("%w: the region grants %v, not %v", driver.ErrAccess, m.access, need)
	}
	mem := m.within(remote.Addr, n)
	if mem == nil {
		return nil, nil, fmt.Errorf("%w: %d bytes at %#x are not all in the region", driver.ErrAccess, n, remote.Addr)
	}
	m.busy.RLock()
	if m.closed {
		m.busy.RUnlock()
		return nil, nil, errBadKey
	}
	return m, mem, nil
}

func (m *mr) done() { m.busy.RUnlock() }

var errBadKey = fmt.Errorf("%w: the key names no region", driver.ErrAccess)

func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return binary.NativeEndian.Uint64(b[:])
}
