package fabric

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Memory in a registered region has a place that its owner can tell to other ranks. The
// place is the region's number and an offset. The owner never uses a number again.
//
//	owner                                    another rank
//	RegionOf(mem) = 7, 4096     7, 4096 ->   Reach(owner, 7), Mem[4096:]
//
// The first Reach of a region sends a request to its owner. Later calls find the region at this rank.

// A span gives the address range of a region.
type span struct {
	base, size uintptr
	id         uint64
}

// RegionOf returns the place of mem, if all of it lies in one region of this rank.
func (f *Fabric) RegionOf(mem []byte) (id uint64, offset int, ok bool) {
	if len(mem) == 0 {
		return 0, 0, false
	}
	at := address(mem)
	spans := f.regions.spansNow()
	i, found := slices.BinarySearchFunc(spans, at, func(s span, at uintptr) int { return cmp.Compare(s.base, at) })
	if !found {
		i--
	}
	if i < 0 || at-spans[i].base > spans[i].size || uintptr(len(mem)) > spans[i].size-(at-spans[i].base) {
		return 0, 0, false
	}
	return spans[i].id, int(at - spans[i].base), true
}

// spansNow returns the spans of the regions, by address. It gathers them at the first call
// after a region was registered or closed.
func (t *regionTable) spansNow() []span {
	if s := t.spans.Load(); s != nil {
		return *s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	spans := make([]span, 0, len(t.whole))
	for r := range t.whole {
		spans = append(spans, span{address(r.mem.Bytes), uintptr(len(r.mem.Bytes)), r.id})
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.base, b.base) })
	t.spans.Store(&spans)
	return spans
}

// ID returns the region's number. No two regions of a rank ever have the same.
func (r *Region) ID() uint64 { return r.id }

// numbered returns this rank's region of a number, nil if there is none.
func (t *regionTable) numbered(id uint64) *Region {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		if r.id == id {
			return r
		}
	}
	return nil
}

// reached holds the regions of other ranks that this rank requested by number.
type reached struct {
	mu sync.RWMutex
	at map[place]*Remote
}

// A place names a region by its owner and its number there.
type place struct {
	rank int
	id   uint64
}

// maxReached bounds the remembered regions, which may be gone by now.
const maxReached = 1 << 10

// Reach returns the region of a number that rank registered. Only the owner can tell a
// rank that the region is there. The first call for a region may wait.
func (f *Fabric) Reach(ctx context.Context, rank int, id uint64) (*Remote, error) {
	if r := f.Reached(rank, id); r != nil {
		return r, nil
	}
	r, err := f.reach(ctx, rank, id)
	if err != nil {
		return nil, err
	}
	f.reached.mu.Lock()
	defer f.reached.mu.Unlock()
	if f.reached.at == nil || len(f.reached.at) == maxReached {
		f.reached.at = map[place]*Remote{}
	}
	f.reached.at[place{rank, id}] = r
	return r, nil
}

// Reached returns the region that an earlier Reach found, or nil.
func (f *Fabric) Reached(rank int, id uint64) *Remote {
	f.reached.mu.RLock()
	defer f.reached.mu.RUnlock()
	return f.reached.at[place{rank, id}]
}

// reach resolves another rank's region by its number. It sends the rank a request, unless that is this rank.
func (f *Fabric) reach(ctx context.Context, rank int, id uint64) (*Remote, error) {
	p, err := f.Peer(ctx, rank)
	if err != nil {
		return nil, err
	}
	if p.bind == nil {
		r := f.regions.numbered(id)
		if r == nil {
			return nil, fmt.Errorf("%w: no region %d", driver.ErrInvalid, id)
		}
		return &Remote{Peer: p, Len: len(r.mem.Bytes), Mem: r.mem.Bytes}, nil
	}
	var rep regionReply
	if err := f.call(ctx, rank, "region", regionRequest{Provider: p.bind.name, ID: id}, &rep); err != nil {
		return nil, err
	}
	return f.remote(ctx, p, rep)
}
