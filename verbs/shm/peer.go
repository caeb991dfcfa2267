//go:build linux

package shm

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// peerID names a peer's context.
type peerID struct {
	pid, fd uint32
	inode   uint64
	token   [2]uint64
}

// peer is another context as this one maps it: its control memfd and its memfds
// as far as they were used. Each is mapped once, for the life of this context.
type peer struct {
	id      peerID
	control *memory.Imported
	doors   *doorbells // in control
	death   *death     // from the first QP on; nil: not watched. Written under Context.mu
	watched bool       // under Context.mu
	dead    atomic.Bool

	views   viewTable
	copies  atomic.Uint32 // whether the system copies between the processes
	refuses bool          // Config.NoCopies

	importer *memory.Importer // of this context

	mu      sync.Mutex // guards the two maps
	imports map[memfdID]*memory.Imported
	bells   map[bellID]*wait.Bell
}

// memfdID includes the inode because the kernel uses descriptor numbers again.
type memfdID struct{ fd, inode uint64 }

// A bellID names the word of a bell: peers with one bell share its mapping.
type bellID struct {
	memfdID
	offset uint64
}

// A view is a registration of the peer, checked and mapped.
type view struct {
	key    driver.Key
	entry  *entry
	addr   uint64 // of the first byte
	size   uint64
	mem    []byte // nil for heap memory
	access driver.Access
}

// peerWith returns the peer that addr names, and its bell.
func (c *Context) peerWith(addr *address) (*peer, *wait.Bell, error) {
	p, err := c.peerAt(addr)
	if err != nil {
		return nil, nil, err
	}
	bell, err := p.bell(addr)
	if err != nil {
		return nil, nil, fmt.Errorf("bell: %w", err)
	}
	return p, bell, nil
}

// peerAt returns the peer that addr names, mapping its control memfd first if
// it is not mapped yet.
func (c *Context) peerAt(addr *address) (*peer, error) {
	id := peerID{addr.pid, addr.fd, addr.inode, addr.token}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, driver.ErrClosed
	}
	if p := c.peers[id]; p != nil {
		return p, checkControl(p.control.Bytes(), addr)
	}
	p, err := c.importPeer(id, addr)
	if err != nil {
		return nil, err
	}
	p.refuses = c.cfg.NoCopies
	c.peers[id] = p
	return p, nil
}

// importPeer maps the control memory of another process, and checks that it is the memory which the
// address means.
func (c *Context) importPeer(id peerID, addr *address) (*peer, error) {
	control, err := c.importer.Import(int(id.pid), int(id.fd), headerSize)
	if errors.Is(err, driver.ErrExhausted) {
		return nil, err // an error of this process, not of the peer
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrLost, err)
	}
	if control.Inode() != id.inode {
		err = fmt.Errorf("%w: descriptor %d of process %d is another memfd by now", driver.ErrLost, id.fd, id.pid)
	} else {
		err = checkControl(control.Bytes(), addr)
	}
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	imports := map[memfdID]*memory.Imported{{uint64(id.fd), id.inode}: control}
	if home := homeFor(addr); c.homes[home] != nil {
		imports[home.memfdID] = c.homes[home]
	}
	return &peer{
		id:       id,
		control:  control,
		doors:    &headerAt(control.Bytes()).doors,
		importer: &c.importer,
		imports:  imports,
		bells:    make(map[bellID]*wait.Bell),
		views:    newViewTable(addr.mrs),
	}, nil
}

// bell maps the bell that addr names.
func (p *peer) bell(addr *address) (*wait.Bell, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := bellID{memfdID{uint64(addr.bellFD), addr.bellInode}, addr.bellOffset}
	if addr.bellInode == p.id.inode && addr.bellOffset != bellOffset() {
		return nil, fmt.Errorf("%w: %#x is no place for a bell", driver.ErrInvalid, addr.bellOffset)
	}
	if b := p.bells[id]; b != nil {
		return b, nil
	}
	mem, err := p.memfd(id.memfdID, id.offset, wait.Size)
	if err != nil {
		return nil, err
	}
	b := wait.NewShared(mem, -1, 0)
	p.bells[id] = b
	return b, nil
}

// memfd returns n bytes from offset of one of the peer's memfds, mapping it on
// first use. Precondition: mu is held.
func (p *peer) memfd(id memfdID, offset, n uint64) ([]byte, error) {
	imp := p.imports[id]
	if imp == nil {
		if id.fd > math.MaxInt32 {
			return nil, fmt.Errorf("%w: descriptor %d", driver.ErrInvalid, id.fd)
		}
		var err error
		if imp, err = p.importer.Import(int(p.id.pid), int(id.fd), 0); err != nil {
			return nil, err
		}
		if imp.Inode() != id.inode {
			err = fmt.Errorf("%w: descriptor %d of process %d is another memfd by now", driver.ErrAccess, id.fd, p.id.pid)
			return nil, errors.Join(err, imp.Close())
		}
		p.imports[id] = imp
	}
	return bounded(imp.Bytes(), offset, n)
}

// bounded returns n bytes from offset of a memfd.
func bounded(mem []byte, offset, n uint64) ([]byte, error) {
	if size := uint64(len(mem)); offset > size || n > size-offset {
		return nil, fmt.Errorf("%w: %d bytes at %d of a memfd of %d", driver.ErrAccess, n, offset, size)
	}
	return mem[offset : offset+n : offset+n], nil
}

// resolve returns the n bytes at remote if the peer granted need on them, or errHeap if they
// lie in its heap.
func (p *peer) resolve(remote driver.RemoteAddr, n uint64, need driver.Access) ([]byte, error) {
	v := p.views.get(keyIndex(remote.RKey.Lo))
	if v == nil || v.key != remote.RKey || v.entry.key.Load() != remote.RKey.Lo {
		var err error
		if v, err = p.lookup(remote.RKey); err != nil {
			return nil, err
		}
	}
	at := remote.Addr - v.addr // below v.addr wraps around
	if at > v.size || n > v.size-at || v.access&need != need {
		return nil, refused(v, remote, n, need)
	}
	if v.mem == nil {
		return nil, errHeap
	}
	return v.mem[at : at+n : at+n], nil
}

func refused(v *view, remote driver.RemoteAddr, n uint64, need driver.Access) error {
	if v.access&need != need {
		return fmt.Errorf("shm: %w: the region grants %v, the request needs %v", driver.ErrAccess, v.access, need)
	}
	return fmt.Errorf("shm: %w: %d bytes at %#x, the region is [%#x, %#x)",
		driver.ErrAccess, n, remote.Addr, v.addr, v.addr+v.size)
}

// lookup reads the peer's table and maps the registration.
func (p *peer) lookup(key driver.Key) (*view, error) {
	index := keyIndex(key.Lo)
	if index >= p.views.size {
		return nil, fmt.Errorf("shm: %w: no such key %v", driver.ErrAccess, key)
	}
	e := entryAt(p.control.Bytes(), index)
	var r region
	if !r.load(e, key) {
		return nil, fmt.Errorf("shm: %w: key %v is not valid (any more)", driver.ErrAccess, key)
	}
	v := &view{key: key, entry: e, addr: r.offset, size: r.length, access: r.access}
	switch {
	case r.access == 0:
		v.size = 0
	case r.fd == heapFD:
		p.probe(r.inode)
	default:
		p.mu.Lock()
		defer p.mu.Unlock()
		mem, err := p.memfd(memfdID{r.fd, r.inode}, r.offset, r.length)
		if err != nil {
			return nil, fmt.Errorf("shm: mapping the region of key %v: %w", key, err)
		}
		v.mem = mem
	}
	p.views.set(index, v)
	return v, nil
}

// close replaces all mappings.
func (p *peer) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, imp := range p.imports {
		errs = append(errs, imp.Close())
	}
	return errors.Join(errs...)
}

// viewTable is a sparse array of views; readers take no lock. Most peers use few entries, so it is a tree.
type viewTable struct {
	size  uint32
	books []atomic.Pointer[viewBook]
}

const (
	pageViews = 16
	bookViews = 64 * pageViews
)

// A viewPage holds the views of neighboring entries, and a viewBook neighboring pages.
type (
	viewPage [pageViews]atomic.Pointer[view]
	viewBook [bookViews / pageViews]atomic.Pointer[viewPage]
)

func newViewTable(size uint32) viewTable {
	return viewTable{size: size, books: make([]atomic.Pointer[viewBook], (size+bookViews-1)/bookViews)}
}

// get returns the view of entry i, nil if there is none. It takes no lock.
func (t *viewTable) get(i uint32) *view {
	if i >= t.size {
		return nil
	}
	book := t.books[i/bookViews].Load()
	if book == nil {
		return nil
	}
	page := book[i/pageViews%uint32(len(book))].Load()
	if page == nil {
		return nil
	}
	return page[i%pageViews].Load()
}

// set requires i < size.
func (t *viewTable) set(i uint32, v *view) {
	book := part(&t.books[i/bookViews])
	page := part(&book[i/pageViews%uint32(len(book))])
	page[i%pageViews].Store(v)
}

// part returns the part of the tree at a pointer. It makes the part if there is none.
func part[T any](at *atomic.Pointer[T]) *T {
	if p := at.Load(); p != nil {
		return p
	}
	at.CompareAndSwap(nil, new(T))
	return at.Load()
}
