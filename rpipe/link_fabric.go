package rpipe

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

// A fabricLink is a link over two regions, one of each end:
//
//	0                data, whose size is a multiple of 64
//	+ size           flags, 8 bytes each
//
// Where the peer is mapped, puts are stores and gets are loads.
type fabricLink struct {
	team          *team.Team
	peer          int       // world rank of the peer
	names         [2]string // of the regions, mine and theirs
	flags         [2]int    // how many there are, mine and theirs
	sizes         [2]int    // of the data, mine and theirs
	fma           int       // bytes that are copied as they are posted; negative takes the fabric's switch point
	mine          memory    // flags and data
	staged        memory    // the stage
	shared        *fanStage // owns that memory if several ends use it
	theirs        atomic.Pointer[fabric.Remote]
	misfit        *fabric.Remote // the peer, if its card was refused
	summaryUpdate                // of the other rank's tally, if this pipe belongs to an aggregate

	own vigil // that of await
}

// A vigil is a goroutine's wait.
type vigil struct {
	l     *fabricLink
	look  func() bool // lookOnce, made once
	ready func() bool // ends the wait when true
	seen  uint64      // health when the peer's fate was last asked for
	gone  error
}

// linkEnd says what one end of a link looks like.
type linkEnd struct {
	name  string
	flags int
	data  int // bytes
}

// newFabricLink makes this end of a link, whose data prepare fills. The other end
// finds it once it appears.
func newFabricLink(ctx context.Context, t *team.Team, peer int, mine, theirs linkEnd, fma int, prepare func(data []byte)) (*fabricLink, error) {
	l := &fabricLink{team: t, peer: peer, names: [2]string{mine.name, theirs.name}, flags: [2]int{mine.flags, theirs.flags},
		sizes: [2]int{mine.data, theirs.data}, fma: fma}
	l.own.init(l)
	var err error
	if l.mine, err = reserve(ctx, t, mine.name, mine.data+8*mine.flags); err == nil {
		prepare(l.mine.block.Bytes)
	}
	return l, err
}

func (l *fabricLink) appear(context.Context) error { return l.mine.appear(l.names[0]) }

func (l *fabricLink) local() []byte { return l.mine.block.Bytes[:l.sizes[0]] }

func (l *fabricLink) flag(i int) uint64 {
	return atomics.Word64(l.mine.block.Bytes[l.sizes[0]+8*i:]).Load()
}

func (l *fabricLink) words() []atomic.Uint64 {
	return atomics.Words64(l.mine.block.Bytes[l.sizes[0]:][:8*l.flags[0]])
}

func (l *fabricLink) near() (n near) {
	r := l.theirs.Load()
	if r == nil || r.Mem == nil {
		return n
	}
	n.team = l.team
	if l.add == nil {
		n.flags, n.bell = atomics.Words64(r.Mem[l.sizes[1]:][:8*l.flags[1]]), r.Peer.Bell()
	}
	return n
}

func (l *fabricLink) stage(n int) ([]byte, error) {
	if l.staged.region != nil {
		return l.staged.block.Bytes, nil
	}
	var err error
	// No peer looks up the stage's name; the device needs the registration.
	l.staged, err = newMemory(context.Background(), l.team, l.names[0]+"/stage", n, unprepared)
	return l.staged.block.Bytes, err
}

func (l *fabricLink) connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	find := l.team.TryRegion
	if wait {
		find = l.team.AwaitRegion
	}
	r, err := find(ctx, l.peer, l.names[1])
	if r == nil || err != nil {
		return false, err
	}
	if r.Len < cardSize {
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
	if r.Len < l.sizes[1]+8*l.flags[1] {
		return false, errNoCard
	}
	l.theirs.Store(r)
	return true, nil
}

func (l *fabricLink) remote() []byte {
	if r := l.theirs.Load(); r != nil && r.Mem != nil {
		return r.Mem[:l.sizes[1]]
	}
	return nil
}

func (l *fabricLink) queue() *fabric.Peer { return l.theirs.Load().Peer }

// flagOf names a flag of the peer.
func (l *fabricLink) flagOf(i int, value uint64) fabric.Flag {
	return fabric.Flag{Offset: l.sizes[1] + 8*i, Value: value, Ahead: true}
}

func (l *fabricLink) putFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	r := l.theirs.Load()
	if len(src) == 0 {
		return r.PostFlag(ctx, l.flagOf(flag, value))
	}
	return r.Notify(ctx, to, src, l.flagOf(flag, value))
}

// putLast: where the target's CPU is asked for additions, other flags overtake
// them. Behind this one the tally may be gone.
func (l *fabricLink) putLast(ctx context.Context, flag int, value uint64) error {
	last := l.flagOf(flag, value)
	last.Ahead = l.add == nil
	return l.theirs.Load().PostFlag(ctx, last)
}

func (l *fabricLink) putStaged(ctx context.Context, to, from, n, flag int, value uint64, twice bool) error {
	r := l.theirs.Load()
	data := fabric.Part{At: to, Mem: l.staged.region.Bytes()[from:][:n], Path: l.path(n)}
	put := fabric.Put{Body: data, Region: l.staged.region, Tell: fabric.TellByFlag, Flag: l.flagOf(flag, value)}
	if !twice {
		return r.Put(ctx, &put)
	}
	put.Tell = fabric.TellNothing
	if err := r.Put(ctx, &put); err != nil {
		return err
	}
	return r.PostFlag(ctx, put.Flag)
}

func (l *fabricLink) mostCopied() int { return l.theirs.Load().MaxCopied() }

func (l *fabricLink) putCopied(ctx context.Context, to int, head, body []byte, flag int, value uint64) error {
	return l.theirs.Load().Put(ctx, &fabric.Put{Head: fabric.Part{At: to, Mem: head, Path: fabric.Inline},
		Body: fabric.Part{At: to + len(head), Mem: body, Path: fabric.Inline}, Tell: fabric.TellByFlag, Flag: l.flagOf(flag, value)})
}

func (l *fabricLink) path(n int) fabric.Path {
	switch {
	case l.fma < 0:
		return fabric.Auto
	case n <= l.fma:
		return fabric.FMA
	}
	return fabric.Bulk
}

func (l *fabricLink) openCounter(ctx context.Context, number uint32, group int) error {
	reader := slices.Index(l.team.Members, l.peer)
	r, err := l.team.TryRegion(ctx, l.peer, tallyName(l.team, reader, number))
	switch {
	case err != nil:
		return err
	case r == nil || group >= r.Len/8:
		return errNoTally
	}
	l.summaryUpdate.open(r.Peer, func(ctx context.Context, n uint64) error {
		return r.PostFlag(ctx, fabric.Flag{Offset: 8 * group, Add: true, Value: n})
	})
	return nil
}

func (l *fabricLink) put(ctx context.Context, to int, src []byte) error {
	r := l.theirs.Load()
	if r.Mem == nil {
		return r.Write(ctx, to, src)
	}
	copy(r.Mem[to:], src)
	return nil
}

func (l *fabricLink) get(ctx context.Context, from int, dst []byte) error {
	return load(ctx, l.theirs.Load(), from, dst)
}

// wordReads: perftest's and our own figures for Soft-RoCE have atomics ahead of
// READs by a third; real devices differ, and can be told by option.
func (l *fabricLink) wordReads(want int) int {
	switch {
	case want >= 0:
		return want
	case l.theirs.Load().Peer.Provider() == "ibv":
		return wordSize
	}
	return 0
}

func (l *fabricLink) getWord(ctx context.Context, from int, dst []byte) error {
	word, err := l.theirs.Load().ReadWord(ctx, from)
	var b [wordSize]byte
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

func (l *fabricLink) progress() bool { return l.team.Progress() }

func (l *fabricLink) ring() { l.team.Bell().Ring() }

func (l *fabricLink) flush(ctx context.Context) error { return l.theirs.Load().Peer.Flush(ctx) }

func (l *fabricLink) fate() error { return l.team.Fate(l.peer) }

func (l *fabricLink) await(ctx context.Context, _ []int, ready func() bool) error {
	return l.own.await(ctx, ready)
}

func (l *fabricLink) alsoAwait(ctx context.Context, _ []int, ready func() bool) error {
	var v vigil
	v.init(l)
	return v.await(ctx, ready)
}

func (v *vigil) init(l *fabricLink) { v.l, v.look = l, v.lookOnce }

func (v *vigil) await(ctx context.Context, ready func() bool) error {
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

// lookOnce looks for what the vigil waits for.
func (v *vigil) lookOnce() bool {
	if v.ready() {
		return true
	}
	if now := v.l.team.Health(); now != v.seen {
		v.seen, v.gone = now, v.l.fate()
	}
	// A peer that refuses may be a rank that is well, which is no news of health.
	if r := v.l.theirs.Load(); r != nil && v.gone == nil {
		v.gone = r.Peer.Err()
	}
	return v.gone != nil
}

func (l *fabricLink) release() error {
	orphaned := gone(l.fate())
	if l.shared != nil {
		l.shared.drop()
		l.staged = memory{}
	}
	return errors.Join(l.staged.release(l.team, orphaned), l.mine.release(l.team, orphaned))
}
