package fabric

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"

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
	askers  map[string]map[int]bool // ranks that requested a region before it was there
	awaited map[string][]*awaited   // peers' regions that this rank waits for
	left    bool                    // this rank's program registers no more regions
	lastID  atomic.Uint64
	list    listing
	spans   atomic.Pointer[[]span] // of the whole regions; nil after a change
}

func (t *regionTable) init() {
	t.byName, t.whole = map[string]*Region{}, map[*Region]struct{}{}
	t.askers, t.awaited = map[string]map[int]bool{}, map[string][]*awaited{}
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
	f.tellReady(r.name, f.regions.askers[r.name])
	delete(f.regions.askers, r.name)
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
// withdraws only the name.
func (r *Region) Close() error {
	r.f.regions.mu.Lock()
	defer r.f.regions.mu.Unlock()
	if r.f.regions.byName[r.name] != r {
		return nil
	}
	delete(r.f.regions.byName, r.name)
	r.f.regions.list.remove(r)
	if r.part {
		return nil
	}
	delete(r.f.regions.whole, r)
	r.f.regions.spans.Store(nil)
	return r.deregister()
}

// deregister takes the memory back from all providers. Afterward no request of a peer reaches it.
func (r *Region) deregister() error {
	var errs []error
	defer r.pin.Unpin()
	for _, mr := range r.mrs {
		errs = append(errs, mr.Close())
	}
	for _, mr := range r.bounces.close(nil) {
		errs = append(errs, mr.Close())
	}
	return errors.Join(errs...)
}

// closeAll takes every region's registration with b out of the table.
func (t *regionTable) closeAll(b *binding) []*verbs.MR {
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
}

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

// A Remote is another rank's region, ready for use.
type Remote struct {
	Peer *Peer
	Len  int
	// Mem is the region itself if this process maps it, else nil.
	Mem     []byte
	addr    driver.RemoteAddr
	whole   *Remote // of a stripe's Remote: the Remote that it stands for
	bounce  *bounce // nil: the provider reaches the memory itself
	retired error   // why no goroutine may post any more; under the mutexes of the peer and its stripes
}

// Retire has every later post fail with cause. The target is about to withdraw the region,
// and a request that arrives afterward ends the connection.
func (r *Remote) Retire(cause error) {
	r.Peer.stripes.mu.Lock() // a later stripe sees what this sets
	defer r.Peer.stripes.mu.Unlock()
	for _, p := range append(slices.Clone(r.Peer.stripes.peers), r.Peer) {
		p.mu.Lock()
		defer p.mu.Unlock()
	}
	r.retired = cause
}

// Unmapped returns r for operations that a queue pair carries even if this process maps the
// memory: so they keep their order with others that it carries.
func (r *Remote) Unmapped() *Remote {
	return &Remote{Peer: r.Peer, Len: r.Len, addr: r.addr, bounce: r.bounce}
}

// origin returns the Remote that a stripe's Remote stands for, or r itself.
func (r *Remote) origin() *Remote {
	if r.whole != nil {
		return r.whole
	}
	return r
}

// Resolve finds the region that rank registered under name. It connects to the rank on
// first use, so it may wait. Callers keep the Remote.
func (f *Fabric) Resolve(ctx context.Context, rank int, name string) (*Remote, error) {
	p, err := f.PeerFor(ctx, rank, name)
	if err != nil {
		return nil, err
	}
	if p.bind == nil {
		r := f.regions.find(name)
		if r == nil {
			return nil, fmt.Errorf("%w: no region %q", driver.ErrInvalid, name)
		}
		return &Remote{Peer: p, Len: len(r.mem.Bytes), Mem: r.mem.Bytes}, nil
	}
	rep, found := p.find(name)
	if !found {
		if err := f.call(ctx, rank, "region", regionRequest{Provider: p.bind.name, Name: name}, &rep); err != nil {
			return nil, err
		}
	}
	return f.remote(ctx, p, rep)
}

// remote makes a Remote of the peer's reply about a region.
func (f *Fabric) remote(ctx context.Context, p *Peer, rep regionReply) (*Remote, error) {
	ctx = wait.Context(ctx)
	r := (&Remote{Peer: p, Len: rep.Length, addr: rep.Addr}).bounceWith(rep.Bounce)
	if !f.Mapping() || r.bounce != nil {
		return r, nil
	}
	mem, err := p.mapped(ctx, rep)
	if err == nil {
		r.Mem = mem
	} else if mine := exhausted(f.cfg.Rank, err); mine != nil {
		return nil, mine
	} else if !errors.Is(err, driver.ErrUnsupported) {
		return nil, f.blame(ctx, p.rank, fmt.Errorf("map memory of rank %d: %w", p.rank, err))
	}
	return r, nil
}

// blame returns the error of a rank, if the launcher reports one within lostGrace. A rank
// that ends frees its memory and closes its connections before its peers hear of the end.
// If ctx ends first, blame returns the cause of that, which may be the report itself. Else
// it returns err.
func (f *Fabric) blame(ctx context.Context, rank int, err error) error {
	ctx = wait.Context(ctx)
	grace, cancel := context.WithTimeout(ctx, lostGrace)
	defer cancel()
	_ = f.Wait(grace, func() bool { return f.health.of(rank) != nil || f.closed.Load() })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return f.health.orElse(rank, err)
}

// call makes a JSON request to another rank.
func (f *Fabric) call(ctx context.Context, rank int, service string, req, rep any) error {
	ctx = wait.Context(ctx)
	payload, err := json.Marshal(req)
	if err != nil {
		return err
	}
	answer, err := f.control(ctx, rank, service, payload)
	if err != nil {
		if gone := f.health.of(rank); gone != nil {
			return gone
		}
		return fmt.Errorf("%s with rank %d: %w", service, rank, err)
	}
	return json.Unmarshal(answer, rep)
}

// Serve answers a request of another rank.
func (f *Fabric) Serve(ctx context.Context, from int, service string, payload []byte) ([]byte, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	defer f.making.Done()
	switch service {
	case "connect":
		return serve(payload, func(req connectRequest) (connectReply, error) { return f.serveConnect(ctx, from, req) })
	case "disconnect":
		return serve(payload, func(req disconnectRequest) (struct{}, error) {
			f.admit(inboundKey{from, req.Stripe}, nil)
			return struct{}{}, nil
		})
	case "sever":
		return serve(payload, func(req severRequest) (struct{}, error) { return struct{}{}, f.sever(ctx, req.Dead) })
	case "region":
		return serve(payload, func(req regionRequest) (regionReply, error) { return f.serveRegion(from, req) })
	case "region-ready":
		return serve(payload, func(m readyMessage) (struct{}, error) { f.regionReady(from, m); return struct{}{}, nil })
	case "leaving":
		return serve(payload, func(struct{}) (leavingReply, error) {
			_, left := f.regions.wanted(everyRegion, from)
			return leavingReply{left}, nil
		})
	case "left":
		return serve(payload, func(m leftMessage) (struct{}, error) { f.regionsLeft(from, m.Names...); return struct{}{}, nil })
	}
	return nil, fmt.Errorf("unknown service %q", service)
}

// serve decodes a request, has handle carry it out, and encodes the response.
func serve[Q, R any](payload []byte, handle func(Q) (R, error)) ([]byte, error) {
	var req Q
	if err := json.Unmarshal(payload, &req); err != nil {
		return nil, err
	}
	rep, err := handle(req)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rep)
}
