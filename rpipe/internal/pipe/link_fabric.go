package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A fabricLayer carries pipes on the fabric.
type fabricLayer struct{ team *team.Team }

// OverFabric returns the layer of pipes on the fabric.
func OverFabric(t *team.Team) Layer { return fabricLayer{t} }

// Err implements Layer: the fate of a peer says when the job has ended.
func (l fabricLayer) Err() error { return nil }

// Stage implements Layer.
func (l fabricLayer) Stage(ctx context.Context, name string, n int) (Stage, error) {
	m, err := newMemory(ctx, l.team, name, n)
	if err != nil {
		return Stage{}, err
	}
	return Stage{m.Block.Bytes, m.Region, func(orphaned bool) error { return m.Release(l.team, orphaned) }}, nil
}

// Link implements Layer.
func (l fabricLayer) Link(ctx context.Context, e *Ends) (Link, error) {
	m := &fabricMemory{team: l.team, peer: l.team.Members[e.Peer], ends: *e}
	var err error
	if m.mine, err = reserve(ctx, l.team, e.Mine.Name, e.Mine.flag(e.Mine.Flags)); err != nil {
		return Link{}, err
	}
	mem := m.mine.Block.Bytes
	e.Prepare(mem)
	return Link{m, m, Home{Data: mem[:e.Mine.Data], Words: words(mem, &e.Mine)}}, nil
}

// words returns the flags of an end in its memory.
func words(mem []byte, l *Layout) []atomic.Uint64 {
	return atomics.Words64(mem[l.Data:l.flag(l.Flags)])
}

// A fabricMemory is peer memory in two regions, one of each end. Where the peer is mapped,
// puts are stores and gets are loads.
type fabricMemory struct {
	team   *team.Team
	peer   int // world rank
	ends   Ends
	mine   Memory
	theirs atomic.Pointer[fabric.Remote]
}

// Flag implements PeerMemory. The card holds the flag Disowned.
func (m *fabricMemory) Flag(i int) uint64 {
	at := cardDisown
	if i != Disowned {
		at = m.ends.Mine.flag(i)
	}
	return atomics.Word64(m.mine.Block.Bytes[at:]).Load()
}

// Put implements PeerMemory.
func (m *fabricMemory) Put(ctx context.Context, p fabric.Put) error {
	return m.theirs.Load().Put(ctx, &p)
}

// putFlag is Put of a flag alone. To describe a Put takes longer than to store the flag:
// aggregate_rate_64 on shm takes 5 percent more.
func (m *fabricMemory) putFlag(ctx context.Context, f fabric.Flag) error {
	return m.theirs.Load().PostFlag(ctx, f)
}

// Get implements PeerMemory.
func (m *fabricMemory) Get(ctx context.Context, from int, dst []byte) error {
	r := m.theirs.Load()
	if r.Mem == nil {
		return r.Read(ctx, from, dst)
	}
	Load(dst, r.Mem, from)
	return nil
}

// NewGetting implements PeerMemory.
func (m *fabricMemory) NewGetting() Getting { return &fabricGetting{memory: m} }

// A fabricGetting is a get from a peer that is not mapped.
type fabricGetting struct {
	memory *fabricMemory
	fabric.Request
}

// Start implements Getting.
func (g *fabricGetting) Start(ctx context.Context, from int, dst []byte) (err error) {
	g.Request, err = g.memory.theirs.Load().StartRead(ctx, from, dst)
	return err
}

// Load copies bytes of mapped memory, and aligned words whole.
func Load(dst, mem []byte, from int) {
	if from%8 != 0 || len(dst)%8 != 0 {
		copy(dst, mem[from:])
		return
	}
	atomics.LoadWords(dst, mem[from:from+len(dst)])
}

// GetWord implements WordGetter.
func (m *fabricMemory) GetWord(ctx context.Context, from int) (uint64, error) {
	return m.theirs.Load().ReadWord(ctx, from)
}

// Flush implements PeerMemory.
func (m *fabricMemory) Flush(ctx context.Context) error { return m.theirs.Load().Peer.Flush(ctx) }

// Release implements PeerMemory.
func (m *fabricMemory) Release() error {
	return m.mine.Release(m.team, gone(m.team.Fate(m.peer)))
}

// Appear implements Directory.
func (m *fabricMemory) Appear(context.Context) error { return m.mine.Appear(m.ends.Mine.Name) }

// Find implements Directory.
func (m *fabricMemory) Find(ctx context.Context, wait bool) (bool, error) {
	find := m.team.TryRegion
	if wait {
		find = m.team.AwaitOffer
	}
	r, err := find(ctx, m.peer, m.ends.Theirs.Name)
	if r == nil || err != nil {
		return false, err
	}
	if r.Len < CardSize {
		return false, errNoCard
	}
	m.theirs.Store(r)
	return true, nil
}

// Reach implements Directory.
func (m *fabricMemory) Reach() (*Far, error) {
	r, l := m.theirs.Load(), &m.ends.Theirs
	if r.Len < l.flag(l.Flags) {
		return nil, errNoCard
	}
	far := &Far{Queue: r.Peer, MaxCopied: r.MaxCopied()}
	if r.Mem != nil {
		far.Data, far.Words = r.Mem[:l.Data], words(r.Mem, l)
	}
	return far, nil
}

// Disown implements Directory.
func (m *fabricMemory) Disown(ctx context.Context) bool {
	return m.theirs.Load().PostFlag(ctx, fabric.Flag{Offset: cardDisown, Value: 1}) == nil
}
