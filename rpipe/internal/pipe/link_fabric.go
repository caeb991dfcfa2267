package pipe

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// A FabricLink is a link over two regions, one of each end:
//
//	0                data, whose size is a multiple of 64
//	+ size           flags, 8 bytes each
//
// Where the peer is mapped, puts are stores and gets are loads.
type FabricLink struct {
	team          *team.Team
	peer          int       // world rank of the peer
	names         [2]string // of the regions, mine and theirs
	flags         [2]int    // how many there are, mine and theirs
	Sizes         [2]int    // of the data, mine and theirs
	fma           int       // bytes that are copied as they are posted; negative takes the fabric's switch point
	Mine          Memory    // flags and data
	staged        Memory    // the stage
	shared        *FanStage // owns that memory if several ends use it
	theirs        atomic.Pointer[fabric.Remote]
	misfit        *fabric.Remote // the peer, if its card was refused
	SummaryUpdate                // of the other rank's summary, if this pipe belongs to an aggregate

	own waiter // that of await
}

// A waiter is a goroutine's wait.
type waiter struct {
	l     *FabricLink
	look  func() bool // lookOnce, made once
	ready func() bool // ends the wait when true
	seen  uint64      // health when the peer's fate was last asked for
	gone  error
}

// LinkEnd describes one end of a link.
type LinkEnd struct {
	Name  string
	Flags int
	Data  int // bytes
}

// newFabricLink makes this end of a link, whose data prepare fills. The other end
// finds it once it appears.
func newFabricLink(ctx context.Context, t *team.Team, peer int, mine, theirs LinkEnd, fma int, prepare func(data []byte)) (*FabricLink, error) {
	l := &FabricLink{team: t, peer: peer, names: [2]string{mine.Name, theirs.Name}, flags: [2]int{mine.Flags, theirs.Flags},
		Sizes: [2]int{mine.Data, theirs.Data}, fma: fma}
	l.own.init(l)
	var err error
	if l.Mine, err = reserve(ctx, t, mine.Name, mine.Data+8*mine.Flags); err == nil {
		prepare(l.Mine.Block.Bytes)
	}
	return l, err
}

// Appear implements Link.
func (l *FabricLink) Appear(context.Context) error { return l.Mine.Appear(l.names[0]) }

// Local implements Link.
func (l *FabricLink) Local() []byte { return l.Mine.Block.Bytes[:l.Sizes[0]] }

// Flag implements Link.
func (l *FabricLink) Flag(i int) uint64 {
	return atomics.Word64(l.Mine.Block.Bytes[l.Sizes[0]+8*i:]).Load()
}

func (l *FabricLink) words() []atomic.Uint64 {
	return atomics.Words64(l.Mine.Block.Bytes[l.Sizes[0]:][:8*l.flags[0]])
}

func (l *FabricLink) near() (n near) {
	r := l.theirs.Load()
	if r == nil || r.Mem == nil {
		return n
	}
	n.team = l.team
	if l.Add == nil {
		n.flags, n.bell = atomics.Words64(r.Mem[l.Sizes[1]:][:8*l.flags[1]]), r.Peer.Bell()
	}
	return n
}

// Stage implements Link.
func (l *FabricLink) Stage(n int) ([]byte, error) {
	if l.staged.Region != nil {
		return l.staged.Block.Bytes, nil
	}
	var err error
	// No peer looks up the stage's name; the device needs the registration.
	l.staged, err = newMemory(context.Background(), l.team, l.names[0]+"/stage", n, unprepared)
	return l.staged.Block.Bytes, err
}

// Connect implements Link.
func (l *FabricLink) Connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	find := l.team.TryRegion
	if wait {
		find = l.team.AwaitRegion
	}
	r, err := find(ctx, l.peer, l.names[1])
	if r == nil || err != nil {
		return false, err
	}
	if r.Len < CardSize {
		return false, errNoCard
	}
	card := make([]byte, cardState)
	if err := load(ctx, r, 0, card); err != nil {
		return false, err
	}
	if err := check(card); err != nil {
		l.misfit = r
		return false, err
	}
	if r.Len < l.Sizes[1]+8*l.flags[1] {
		return false, errNoCard
	}
	l.theirs.Store(r)
	return true, nil
}

// Remote implements Link.
func (l *FabricLink) Remote() []byte {
	if r := l.theirs.Load(); r != nil && r.Mem != nil {
		return r.Mem[:l.Sizes[1]]
	}
	return nil
}

// Queue implements Link.
func (l *FabricLink) Queue() *fabric.Peer { return l.theirs.Load().Peer }

// flagOf names a flag of the peer.
func (l *FabricLink) flagOf(i int, value uint64) fabric.Flag {
	return fabric.Flag{Offset: l.Sizes[1] + 8*i, Value: value, Ahead: true}
}

// PutFlag implements Link.
func (l *FabricLink) PutFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	r := l.theirs.Load()
	if len(src) == 0 {
		return r.PostFlag(ctx, l.flagOf(flag, value))
	}
	return r.Notify(ctx, to, src, l.flagOf(flag, value))
}

// PutLast: where the target's CPU is asked for additions, other flags overtake
// them. Behind this one the summary may be gone.
func (l *FabricLink) PutLast(ctx context.Context, flag int, value uint64) error {
	last := l.flagOf(flag, value)
	last.Ahead = l.Add == nil
	return l.theirs.Load().PostFlag(ctx, last)
}

// PutStaged implements Link.
func (l *FabricLink) PutStaged(ctx context.Context, to, from, n, flag int, value uint64, twice bool) error {
	r := l.theirs.Load()
	data := fabric.Part{At: to, Mem: l.staged.Region.Bytes()[from:][:n], Path: l.path(n)}
	put := fabric.Put{Body: data, Region: l.staged.Region, Tell: fabric.TellByFlag, Flag: l.flagOf(flag, value)}
	if !twice {
		return r.Put(ctx, &put)
	}
	put.Tell = fabric.TellNothing
	if err := r.Put(ctx, &put); err != nil {
		return err
	}
	return r.PostFlag(ctx, put.Flag)
}

func (l *FabricLink) mostCopied() int { return l.theirs.Load().MaxCopied() }

func (l *FabricLink) putCopied(ctx context.Context, to int, head, body []byte, flag int, value uint64) error {
	return l.theirs.Load().Put(ctx, &fabric.Put{Head: fabric.Part{At: to, Mem: head, Path: fabric.Inline},
		Body: fabric.Part{At: to + len(head), Mem: body, Path: fabric.Inline}, Tell: fabric.TellByFlag, Flag: l.flagOf(flag, value)})
}

func (l *FabricLink) path(n int) fabric.Path {
	switch {
	case l.fma < 0:
		return fabric.Auto
	case n <= l.fma:
		return fabric.FMA
	}
	return fabric.Bulk
}

// OpenCounter implements Link.
func (l *FabricLink) OpenCounter(ctx context.Context, number uint32, group int) error {
	reader := slices.Index(l.team.Members, l.peer)
	r, err := l.team.TryRegion(ctx, l.peer, summaryName(l.team, reader, number))
	switch {
	case err != nil:
		return err
	case r == nil || group >= r.Len/8:
		return errNoSummary
	}
	l.SummaryUpdate.Open(r.Peer, func(ctx context.Context, n uint64) error {
		return r.PostFlag(ctx, fabric.Flag{Offset: 8 * group, Add: true, Value: n})
	})
	return nil
}

// Put implements Link.
func (l *FabricLink) Put(ctx context.Context, to int, src []byte) error {
	r := l.theirs.Load()
	if r.Mem == nil {
		return r.Write(ctx, to, src)
	}
	copy(r.Mem[to:], src)
	return nil
}

// Get implements Link.
func (l *FabricLink) Get(ctx context.Context, from int, dst []byte) error {
	return load(ctx, l.theirs.Load(), from, dst)
}

// wordReads: perftest's and our own figures for Soft-RoCE have atomics ahead of
// READs by a third; real devices differ, and can be told by option.
func (l *FabricLink) wordReads(want int) int {
	switch {
	case want >= 0:
		return want
	case l.theirs.Load().Peer.Provider() == "ibv":
		return WordSize
	}
	return 0
}

func (l *FabricLink) getWord(ctx context.Context, from int, dst []byte) error {
	word, err := l.theirs.Load().ReadWord(ctx, from)
	var b [WordSize]byte
	binary.NativeEndian.PutUint64(b[:], word)
	copy(dst, b[:])
	return err
}

// load fetches bytes, and aligned words whole.
func load(ctx context.Context, r *fabric.Remote, from int, dst []byte) error {
	if r.Mem == nil {
		return r.Read(ctx, from, dst)
	}
	if from%8 != 0 || len(dst)%8 != 0 {
		copy(dst, r.Mem[from:])
		return nil
	}
	atomics.LoadWords(dst, r.Mem[from:from+len(dst)])
	return nil
}

// Progress implements Link.
func (l *FabricLink) Progress() bool { return l.team.Progress() }

// Ring implements Link.
func (l *FabricLink) Ring() { l.team.Bell().Ring() }

// Flush implements Link.
func (l *FabricLink) Flush(ctx context.Context) error { return l.theirs.Load().Peer.Flush(ctx) }

// Fate implements Link.
func (l *FabricLink) Fate() error { return l.team.Fate(l.peer) }

// Await implements Link.
func (l *FabricLink) Await(ctx context.Context, _ []int, ready func() bool) error {
	return l.own.Await(ctx, ready)
}

// AlsoAwait implements Link.
func (l *FabricLink) AlsoAwait(ctx context.Context, _ []int, ready func() bool) error {
	var v waiter
	v.init(l)
	return v.Await(ctx, ready)
}

func (v *waiter) init(l *FabricLink) { v.l, v.look = l, v.lookOnce }

func (v *waiter) Await(ctx context.Context, ready func() bool) error {
	team := v.l.team
	v.ready, v.seen, v.gone = ready, team.Health()-1, nil
	err := team.Wait(ctx, v.look)
	v.ready = nil
	if err == nil && v.gone != nil {
		team.Progress() // puts that have arrived count
		if !ready() {
			return v.gone
		}
	}
	return err
}

// lookOnce reports whether the wait is over.
func (v *waiter) lookOnce() bool {
	if v.ready() {
		return true
	}
	if now := v.l.team.Health(); now != v.seen {
		v.seen, v.gone = now, v.l.Fate()
	}
	// A peer that refuses may be a rank that is well, which is no news of health.
	if r := v.l.theirs.Load(); r != nil && v.gone == nil {
		v.gone = r.Peer.Err()
	}
	return v.gone != nil
}

// Release implements Link.
func (l *FabricLink) Release() error {
	orphaned := gone(l.Fate())
	if l.shared != nil {
		l.shared.Drop()
		l.staged = Memory{}
	}
	return errors.Join(l.staged.Release(l.team, orphaned), l.Mine.Release(l.team, orphaned))
}
