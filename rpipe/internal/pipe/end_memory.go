package pipe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// Hook makes the link. stage is how much of one the end may take.
func (p *End) Hook(ctx context.Context, incarnation int, mine, theirs Layout, stage int) (err error) {
	p.Link, err = p.Layer.Link(ctx, &Ends{Team: p.team.Name, Peer: p.Peer, Mine: mine, Theirs: theirs, Stage: stage, Prepare: p.prepare})
	if err != nil {
		return err
	}
	p.Name = fmt.Sprintf("%s#%d", p.Name, incarnation)
	p.mine, p.theirs, p.stage.Mem = mine, theirs, p.Home.Stage
	p.wait.init(p)
	return nil
}

// Connect finds the peer, as Find does, and connects once check has accepted the card. It reports
// whether the peer is there.
func (p *End) Connect(ctx context.Context, wait bool, check func(card []byte) error) (bool, error) {
	if found, err := p.Find(ctx, wait); !found || err != nil {
		return false, err
	}
	data := make([]byte, CardSize)
	if err := p.Get(ctx, 0, data); err != nil {
		return false, err
	}
	if err := check(data); err != nil {
		return false, err
	}
	far, err := p.Reach()
	if err != nil {
		return false, err
	}
	p.far.Store(far)
	return true, nil
}

// Remote returns the peer's data where it can be loaded and stored directly, else nil.
func (p *End) Remote() []byte {
	if far := p.far.Load(); far != nil {
		return far.Data
	}
	return nil
}

// Queue returns the connection to the rank of the connected peer.
func (p *End) Queue() *fabric.Peer { return p.far.Load().Queue }

// near is a mapped peer on the fabric.
type near struct {
	team  *team.Team      // its health moves when the peer's rank dies; nil: the peer is not mapped
	flags []atomic.Uint64 // the peer's
	bell  wait.Ringer     // wakes the peer's rank after a store
}

// nearPeer returns how the connected peer is reached where it is mapped.
func (p *End) nearPeer() near {
	far := p.far.Load()
	if far.Words == nil {
		return near{}
	}
	return near{p.team, far.Words, far.Queue.Bell()}
}

// Flag is the link's, without a call where that can be.
func (p *End) Flag(i int) uint64 {
	if p.Words != nil {
		return p.Words[i].Load()
	}
	return p.PeerMemory.Flag(i)
}

// disowned reports whether the peer has disowned this end.
func (p *End) disowned() bool { return p.PeerMemory.Flag(Disowned) != 0 }

// Fate returns an error that says how the peer ended, nil while it is well.
func (p *End) Fate() error {
	if err := p.Layer.Err(); err != nil {
		return err
	}
	return p.team.Fate(p.team.Members[p.Peer])
}

// Presence is Fate that also returns an error once the peer's rank has left without closing
// the peer.
func (p *End) Presence() error {
	if err := p.Layer.Err(); err != nil {
		return err
	}
	return p.team.Presence(p.team.Members[p.Peer], p.theirs.Name)
}

// Unsought reports whether the peer's rank has left since this end looked for the peer in vain. The
// next look says whether the rank opened the peer before.
func (p *End) Unsought() bool {
	return !p.Joined.Load() && p.team.Presence(p.team.Members[p.Peer], "") != nil && p.Presence() == nil
}

// Progress takes in arrived puts. It is false where none needs that.
func (p *End) Progress() bool { return p.team.Progress() }

// Ring has a goroutine of this rank that waits look again.
func (p *End) Ring() { p.team.Bell().Ring() }

// flagAt describes a flag of the peer. Pipes use no additions that it could overtake.
func (p *End) flagAt(flag int, value uint64) fabric.Flag {
	return fabric.Flag{Offset: p.theirs.flag(flag), Value: value, Ahead: true}
}

// told describes a put of src (which may be empty) with a flag behind it.
func (p *End) told(to int, src []byte, flag int, value uint64) fabric.Put {
	return fabric.Put{Body: fabric.Part{At: to, Mem: src}, Tell: fabric.TellByFlag, Flag: p.flagAt(flag, value)}
}

// PutFlag stores src (which may be empty) at data offset to, then value in a flag.
func (p *End) PutFlag(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	if by, ok := p.PeerMemory.(*fabricMemory); ok && len(src) == 0 {
		return by.putFlag(ctx, p.flagAt(flag, value))
	}
	return p.PeerMemory.Put(ctx, p.told(to, src, flag, value))
}

// PutData stores src at data offset to.
func (p *End) PutData(ctx context.Context, to int, src []byte) error {
	return p.PeerMemory.Put(ctx, fabric.Put{Body: fabric.Part{At: to, Mem: src}})
}

// PutCopied is PutFlag of bytes that the device copies. It waits for room in a queue at most;
// an error means that the flag was not put.
func (p *End) PutCopied(ctx context.Context, to int, src []byte, flag int, value uint64) error {
	put := p.told(to, src, flag, value)
	put.Body.Path = fabric.Inline
	return p.PeerMemory.Put(ctx, put)
}

// PutStaged is PutFlag of n bytes from the stage's offset from, which stay as they are
// until the peer says that it has them.
func (p *End) PutStaged(ctx context.Context, to, from, n, flag int, value uint64) error {
	put := p.told(to, p.stage.Mem[from:][:n], flag, value)
	put.Body.Path, put.Region, put.Lent = p.path(n), p.stage.Region, p.stage.Region == nil
	if !p.Twice {
		return p.PeerMemory.Put(ctx, put)
	}
	put.Tell = fabric.TellNothing
	if err := p.PeerMemory.Put(ctx, put); err != nil {
		return err
	}
	return p.PutFlag(ctx, 0, nil, flag, value)
}

// path returns how n bytes leave from the stage.
func (p *End) path(n int) fabric.Path {
	switch {
	case p.Fma < 0:
		return fabric.Auto
	case n <= p.Fma:
		return fabric.FMA
	}
	return fabric.Bulk
}

// GetOwn is Get of bytes of this end that no rank changes meanwhile. It gets up to
// Options.Atomic bytes by an atomic. perftest's and our own figures for Soft-RoCE have
// atomics ahead of READs by a third; real devices differ, and can be told by option.
func (p *End) GetOwn(ctx context.Context, from int, dst []byte) error {
	most := p.Atomic
	if most < 0 && p.Queue().Provider() == "ibv" {
		most = WordSize
	}
	by, ok := p.PeerMemory.(WordGetter)
	if !ok || len(dst) > most {
		return p.Get(ctx, from, dst)
	}
	word, err := by.GetWord(ctx, from)
	var b [WordSize]byte
	binary.NativeEndian.PutUint64(b[:], word)
	copy(dst, b[:])
	return err
}

// Stage returns n more bytes, made by the first call, which PutStaged sends as they are and
// which Get fills as they are.
func (p *End) Stage(n int) (_ []byte, err error) {
	if p.stage.Mem == nil {
		// No peer looks up the stage's name; the device needs the registration.
		p.stage, err = p.Layer.Stage(context.Background(), p.mine.Name+"/stage", n)
	}
	return p.stage.Mem, err
}

// NewStage makes a stage of o.Heap bytes that many ends use.
func NewStage(ctx context.Context, t *team.Team, o *Options) (Stage, error) {
	r, err := RegistryOf(t)
	if err != nil {
		return Stage{}, err
	}
	return o.layer(t).Stage(ctx, fmt.Sprintf("rpipe/%s/fan#%d/%s", t.Name, r.number(), o.Name), o.Heap)
}

// UseStage makes s the stage of this end, of which Release calls s.Release.
func (p *End) UseStage(s Stage) { p.stage = s }

// Release gives this end's memory back. The peer has said that it puts nothing more here.
func (p *End) Release() error {
	err := p.PeerMemory.Release()
	if p.stage.Release != nil {
		err = errors.Join(err, p.stage.Release(gone(p.Fate())))
	}
	p.stage = Stage{}
	return err
}
