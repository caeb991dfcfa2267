package fabric

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Region is memory of this rank that peers find by its name.
type Region struct {
	f    *Fabric
	name string
	mem  driver.Memory
	mrs  map[*binding]*verbs.MR
	// A part is a piece of another region that begins at offset there.
	part   bool
	offset int
	id     uint64 // of the whole region
	// bounces are the stages for peers whose provider refused the memory; nil: none may.
	bounces *stagesAt
	pin     goruntime.Pinner
	once    sync.Once // by Close
	outcome error     // of it
}

// Pin keeps the memory of a whole region where it is until Close, or the end of the fabric.
func (r *Region) Pin() { r.pin.Pin(&r.mem.Bytes[0]) }

// Bytes returns the region's memory.
func (r *Region) Bytes() []byte { return r.mem.Bytes }

// Name returns the name that other ranks find the region by.
func (r *Region) Name() string { return r.name }

// regionTable holds the regions by name.
type regionTable struct {
	mu      sync.Mutex
	byName  map[string]*Region
	whole   map[*Region]struct{}    // those that are not parts
	waiters map[string]map[int]bool // ranks that requested a region before it was there
	awaited map[string][]*awaited   // peers' regions that this rank waits for
	left    bool                    // this rank's program registers no more regions
	lastID  atomic.Uint64
	list    listing
	spans   atomic.Pointer[[]span] // of the whole regions; nil after a change
	stuck   []*Region              // closed ones whose memory a stopped peer may still change
	closing sync.RWMutex           // read-locked by each Close and dropStages; taken ahead of mu
}

func (t *regionTable) init() {
	t.byName, t.whole = map[string]*Region{}, map[*Region]struct{}{}
	t.waiters, t.awaited = map[string]map[int]bool{}, map[string][]*awaited{}
}

// Register makes mem reachable for every rank under a name. The name is unique among the
// rank's regions.
func (f *Fabric) Register(ctx context.Context, name string, mem driver.Memory) (*Region, error) {
	return f.register(ctx, f.bindings, name, mem, nil)
}

// RegisterFor is Register for memory that one rank alone reaches. Memory with a Demand so occupies memory only
// by its accesses, if all providers that may lead to the rank can do that.
func (f *Fabric) RegisterFor(ctx context.Context, rank int, name string, mem driver.Memory) (*Region, error) {
	return f.register(ctx, f.waysTo(rank), name, mem, nil)
}

// register registers memory with some providers and publishes it under a name. After an error nothing
// is registered.
func (f *Fabric) register(ctx context.Context, ways []*binding, name string, mem driver.Memory, bounces *stagesAt) (*Region, error) {
	ctx = wait.Context(ctx)
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.making.Done()
	r := &Region{f: f, name: name, mem: mem, mrs: map[*binding]*verbs.MR{}, bounces: bounces, id: f.regions.lastID.Add(1)}
	for _, b := range ways {
		mr, err := b.pd.RegMR(ctx, mem, driver.AllAccess)
		if err == nil {
			r.mrs[b] = mr
		} else if err = r.refuses(b, err); err != nil {
			return nil, errors.Join(err, r.deregister())
		}
	}
	f.regions.mu.Lock()
	defer f.regions.mu.Unlock()
	if err := f.publish(r); err != nil {
		return nil, errors.Join(err, r.deregister())
	}
	f.regions.whole[r] = struct{}{}
	f.regions.spans.Store(nil)
	return r, nil
}

// publish makes a region known under its name, and tells the ranks that wait for it. The
// caller holds the table's mutex.
func (f *Fabric) publish(r *Region) error {
	if _, ok := f.regions.byName[r.name]; ok {
		return fmt.Errorf("%w: region %q exists", driver.ErrInvalid, r.name)
	}
	f.regions.byName[r.name] = r
	f.regions.list.add(r)
	f.tellReady(r.name, f.regions.waiters[r.name])
	delete(f.regions.waiters, r.name)
	return nil
}

// Part makes n bytes at offset known under a name of their own. It does not register them
// again: a peer that finds the part has the key of the whole. Many small pieces of memory
// so cost one registration. The caller closes parts ahead of the whole.
func (r *Region) Part(name string, offset, n int) (*Region, error) {
	if err := r.f.begin(); err != nil {
		return nil, err
	}
	defer r.f.making.Done()
	mem := r.mem
	mem.Bytes, mem.Offset = mem.Bytes[offset:offset+n:offset+n], mem.Offset+int64(offset)
	p := &Region{f: r.f, name: name, mem: mem, mrs: r.mrs, part: true, offset: r.offset + offset, id: r.id, bounces: r.bounces}
	r.f.regions.mu.Lock()
	defer r.f.regions.mu.Unlock()
	if err := r.f.publish(p); err != nil {
		return nil, err
	}
	return p, nil
}

// Close withdraws the region: no peer reaches it by its keys any more. Of a part it
// withdraws only the name. Other calls that use the table of regions go on while a provider
// waits for a stopped peer. With an error, a request of such a peer may still change the memory.
// A further Close waits for the first one and returns its outcome.
func (r *Region) Close() error {
	r.once.Do(func() { r.outcome = r.close() })
	return r.outcome
}

// close is the first Close.
func (r *Region) close() error {
	t := &r.f.regions
	t.closing.RLock() // closeAll waits until deregister has returned
	defer t.closing.RUnlock()
	if !t.remove(r) || r.part {
		return nil
	}
	r.f.awaitPoll() // a message of a peer may have found the memory before
	err := r.deregister()
	if err != nil {
		t.mu.Lock()
		t.stuck = append(t.stuck, r)
		t.mu.Unlock()
		return err
	}
	r.pin.Unpin()
	return nil
}

// remove takes r out of the table. It returns false if r is not there.
func (t *regionTable) remove(r *Region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName[r.name] != r {
		return false
	}
	delete(t.byName, r.name)
	t.list.remove(r)
	if !r.part {
		delete(t.whole, r)
		t.spans.Store(nil)
	}
	return true
}

// GiveBack closes a region and frees its block. If Close fails, the block stays quarantined until the
// fabric closes: another owner would find a stopped peer's bytes there. r may be nil, and b empty.
func (f *Fabric) GiveBack(r *Region, b arena.Block) error { return f.giveBack(r, b, f.arena.Free) }

// GiveBackKept is GiveBack for a block that the arena may keep ([arena.Arena.Keep]).
func (f *Fabric) GiveBackKept(r *Region, b arena.Block) error { return f.giveBack(r, b, f.arena.Keep) }

// giveBack is GiveBack that frees the block by a method of the arena.
func (f *Fabric) giveBack(r *Region, b arena.Block, free func(arena.Block) error) error {
	var err error
	if r != nil {
		err = r.Close()
	}
	switch {
	case b.Bytes == nil:
	case err != nil:
		f.arena.Quarantine(b)
	default:
		return free(b)
	}
	return err
}

// deregister takes the memory back from all providers. When it returns nil, no request of a peer reaches it.
func (r *Region) deregister() error {
	var errs []error
	for _, mr := range r.mrs {
		errs = append(errs, mr.Close())
	}
	for _, mr := range r.bounces.close(nil) {
		errs = append(errs, mr.Close())
	}
	return errors.Join(errs...)
}

// closeAll returns every region's registration with b. It waits for closes that are under way.
func (t *regionTable) closeAll(b *binding) []*verbs.MR {
	t.closing.Lock()
	defer t.closing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	var mrs []*verbs.MR
	for r := range t.whole {
		if mr := r.mrs[b]; mr != nil {
			mrs = append(mrs, mr)
		}
		mrs = append(mrs, r.bounces.close(b)...)
	}
	return mrs
}

// unpin ends the pins of all regions. No device reaches them any more.
func (t *regionTable) unpin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		r.pin.Unpin()
	}
	for _, r := range t.stuck {
		r.pin.Unpin()
	}
	t.stuck = nil
}

// find returns the region of a name, nil if there is none.
func (t *regionTable) find(name string) *Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

// word returns the aligned word of width bytes at a peer's address. It returns nil if the
// peer may not access it.
func (t *regionTable) word(b *binding, at driver.RemoteAddr, width int) []byte {
	r, mem := t.bytes(b, at, width)
	if width == 0 || r == nil || (at.Addr-r.at(b).Addr)%uint64(width) != 0 {
		return nil
	}
	return mem
}

// bytes returns the n bytes at a peer's address, and their region. It returns nil if the peer may not access
// them.
func (t *regionTable) bytes(b *binding, at driver.RemoteAddr, n int) (*Region, []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		first := r.at(b)
		if first.RKey != at.RKey {
			continue
		}
		offset := at.Addr - first.Addr
		if size := uint64(len(r.mem.Bytes)); n < 0 || offset >= size || uint64(n) > size-offset {
			return nil, nil
		}
		return r, r.mem.Bytes[offset:][:n]
	}
	return nil, nil
}

// segment returns mem as a segment for b, if it lies in a region.
func (t *regionTable) segment(b *binding, mem []byte) (driver.Segment, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		if mr := r.mrs[b]; mr != nil {
			if seg, ok := mr.SegmentOf(mem); ok {
				return seg, true
			}
		}
	}
	return driver.Segment{}, false
}
