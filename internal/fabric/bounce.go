package fabric

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A device may refuse a kind of memory. If the owner of a region permits it, peers then reach the
// region through stages: registered heap memory of the owner, one stage for each Remote.
//
//	origin                                          owner
//	WRITE a piece to the stage              -->
//	request: move it to the region          -->     a CPU copies
//	                                        <--     response
//
// A read requests the move out of the region, and then reads the stage. A CPU of the owner applies
// atomics to the region itself, as it does for all memory where byCPU is true.

// bouncedKey marks the address of a region that has no registration. Lo is the region's number.
const bouncedKey = ^uint64(0)

// bounced reports whether an address is one of a region without registration.
func bounced(at driver.RemoteAddr) bool { return at.RKey.Hi == bouncedKey }

// stagesAt holds the stages of a region's peers, at the owner.
type stagesAt struct {
	mu     sync.Mutex
	all    map[*binding][]stage // by number
	closed bool
}

// A stage is registered memory for a connection of a peer. Without memory its number is free.
type stage struct {
	mr   *verbs.MR
	user inboundKey
}

// RegisterOrBounce is Register that lets peers reach mem through stages over each provider that refuses
// its kind. It returns driver.ErrKind if the CPUs do not apply atomics over that provider.
func (f *Fabric) RegisterOrBounce(ctx context.Context, name string, mem driver.Memory) (*Region, error) {
	return f.register(ctx, f.bindings, name, mem, &stagesAt{all: map[*binding][]stage{}})
}

// refuses decides what becomes of an error of RegMR: nil if peers over b reach the region through stages.
func (r *Region) refuses(b *binding, err error) error {
	switch {
	case r.bounces == nil || !errors.Is(err, driver.ErrKind):
		return err
	case !r.f.byCPU(b):
		return fmt.Errorf("%w; a bounce needs atomics by CPUs (GRUN_ATOMICS=cpu)", err)
	}
	return nil
}

// bounceReply names the stage of one Remote.
type bounceReply struct {
	Name   string
	Number uint64 // at the owner
	Stage  driver.RemoteAddr
}

// open makes a stage for a peer's connection over b.
func (s *stagesAt) open(ctx context.Context, b *binding, name string, user inboundKey) (*bounceReply, error) {
	mr, err := b.pd.RegMR(ctx, memory.Heap(stageSize), driver.AllAccess)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.Join(fmt.Errorf("region %q is closed", name), mr.Close())
	}
	list := s.all[b]
	n := slices.IndexFunc(list, func(free stage) bool { return free.mr == nil })
	if n < 0 {
		n, list = len(list), append(list, stage{})
	}
	list[n], s.all[b] = stage{mr, user}, list
	return &bounceReply{Name: name, Number: uint64(n), Stage: mr.Remote(0)}, nil
}

// drop frees the stages of a connection that has ended, and returns their registrations.
func (s *stagesAt) drop(user inboundKey) []*verbs.MR {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free(func(_ *binding, of *stage) bool { return of.user == user })
}

// free frees the stages that match, and returns their registrations. The caller holds the mutex.
func (s *stagesAt) free(matches func(at *binding, of *stage) bool) (mrs []*verbs.MR) {
	for at, list := range s.all {
		for i := range list {
			if list[i].mr != nil && matches(at, &list[i]) {
				mrs = append(mrs, list[i].mr)
				list[i] = stage{}
			}
		}
	}
	return mrs
}

// bytes returns the first n bytes of a stage, nil if there is none.
func (s *stagesAt) bytes(b *binding, number uint64, n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number >= uint64(len(s.all[b])) || s.all[b][number].mr == nil || n < 0 || n > stageSize {
		return nil
	}
	return s.all[b][number].mr.Bytes()[:n]
}

// close opens no further stage, and returns the registrations with b, or all if b is nil.
func (s *stagesAt) close(b *binding) []*verbs.MR {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.free(func(at *binding, _ *stage) bool { return b == nil || at == b })
}

// dropStages frees the stages of a connection that has ended, at all regions. Other calls go on while
// a provider waits for a stopped peer, as beside [Region.Close].
func (t *regionTable) dropStages(user inboundKey) {
	t.closing.RLock() // closeAll waits until all are closed
	defer t.closing.RUnlock()
	for _, mr := range t.stagesOf(user) {
		_ = mr.Close() // it is the device's that fails, and operations report that
	}
}

// stagesOf takes the stages of a connection out of all regions.
func (t *regionTable) stagesOf(user inboundKey) (mrs []*verbs.MR) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		mrs = append(mrs, r.bounces.drop(user)...)
	}
	return mrs
}

// move carries out the request in msg to copy between a region and a stage, and turns msg into the response.
func (m *mailbox) move(msg *message) {
	n, status := int(msg.uint(messageCompare)), driver.RemoteAccess
	if r, mem := m.f.regions.bytes(m.bind, msg.address(), n); r != nil && r.bounces != nil {
		if stage := r.bounces.bytes(m.bind, msg.uint(messageOperand), n); stage != nil {
			status = driver.Success
			if msg[messageOp] == moveIn {
				copy(mem, stage)
				m.f.bell.Ring()
			} else {
				copy(stage, mem)
			}
		}
	}
	msg.respond(status, 0, 0)
}

// A bounce is the way of one Remote through a stage of its owner.
type bounce struct {
	bounceReply
	turn chan struct{} // holds a value while a goroutine uses the stage
}

// Bounced reports whether host memory of the owner stages the bytes of each transfer.
func (r *Remote) Bounced() bool { return r.bounce != nil }

// bounceWith has r go through a stage.
func (r *Remote) bounceWith(rep *bounceReply) *Remote {
	if rep != nil {
		r.bounce = &bounce{*rep, make(chan struct{}, 1)}
	}
	return r
}

// eachPiece calls move for each piece of mem that the stage takes, while no other goroutine uses the stage.
func (r *Remote) eachPiece(ctx context.Context, at int, mem []byte, move func(at int, piece []byte) error) error {
	select {
	case r.bounce.turn <- struct{}{}:
	case <-wait.Context(ctx).Done():
		return context.Cause(wait.Context(ctx))
	}
	defer func() { <-r.bounce.turn }()
	r.Peer.Stats.count(len(mem))
	for len(mem) > 0 {
		n := min(len(mem), stageSize)
		if err := move(at, mem[:n]); err != nil {
			return err
		}
		r.Peer.Stats.staged.Add(uint64(n))
		at, mem = at+n, mem[n:]
	}
	return nil
}

// putBounced starts a put as Start does, and ends it.
func (r *Remote) putBounced(ctx context.Context, p *Put) error {
	body, flag := p.Body.Mem, p.Flag
	if p.Tell == TellByLastWord {
		body, flag = p.lastWord()
	}
	err := r.writeBounced(ctx, p.Head.At, p.Head.Mem)
	if err == nil && p.Blocks != nil {
		err = eachBlock(p.Blocks, body, func(at int, block []byte) error { return r.writeBounced(ctx, at, block) })
	} else if err == nil {
		err = r.writeBounced(ctx, p.Body.At, body)
	}
	if err != nil || p.Tell == TellNothing {
		return err
	}
	return r.PostFlag(ctx, flag)
}

// writeBounced returns once the owner has moved mem to its region.
func (r *Remote) writeBounced(ctx context.Context, at int, mem []byte) error {
	if len(mem) == 0 {
		return nil
	}
	return r.eachPiece(ctx, at, mem, func(at int, piece []byte) error {
		o, err := r.newOp(ctx)
		if err != nil {
			return err
		}
		o.unfit = o.lend(0, piece, false, false)
		o.ordered = true // an earlier move that its caller gave up may not be over
		o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpWrite, Flags: driver.Signaled, Local: o.seg[:1], Remote: r.bounce.Stage}
		write, err := o.start(ctx, 1)
		if err != nil {
			return err
		}
		return errors.Join(r.move(ctx, moveIn, at, len(piece)), write.Wait(ctx))
	})
}

// readBounced returns once dst has the bytes of the region.
func (r *Remote) readBounced(ctx context.Context, at int, dst []byte) error {
	return r.eachPiece(ctx, at, dst, func(at int, piece []byte) error {
		if err := r.move(ctx, moveOut, at, len(piece)); err != nil {
			return err
		}
		o, err := r.newOp(ctx)
		if err != nil {
			return err
		}
		o.unfit = o.lend(0, piece, true, false)
		o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpRead, Flags: driver.Signaled, Local: o.seg[:1], Remote: r.bounce.Stage}
		read, err := o.start(ctx, 1)
		if err != nil {
			return err
		}
		return read.Wait(ctx)
	})
}

// readBlocksBounced reads blocks to blocks of dst, one by one.
func (r *Remote) readBlocksBounced(ctx context.Context, dst []byte, b *Blocks) error {
	return eachBlock(b, dst, func(at int, block []byte) error { return r.readBounced(ctx, at, block) })
}

// eachBlock uses b up: it calls move for each block of mem with its place in the region.
func eachBlock(b *Blocks, mem []byte, move func(at int, block []byte) error) error {
	for {
		_, there, here := b.batch(0)
		if there.Count == 0 {
			return nil
		}
		for i := range there.Count {
			at := here.At + i*here.Stride
			if err := move(there.At+i*there.Stride, mem[at:at+there.Block]); err != nil {
				return err
			}
		}
	}
}

// move has a CPU of the owner copy n bytes between the region and the stage, and waits for it.
func (r *Remote) move(ctx context.Context, way byte, at, n int) error {
	o, err := r.newOp(ctx)
	if err != nil {
		return err
	}
	o.message.move(o.id, o.uses.Load(), way, r.addr.Add(uint64(at)), r.bounce.Number, n)
	o.send(0)
	_, err = o.value(ctx)
	return err
}

// refused reports whether mem lies in a region that b's device does not know.
func (t *regionTable) refused(b *binding, mem []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.whole {
		if at := address(mem) - address(r.mem.Bytes); r.mrs[b] == nil && at < uintptr(len(r.mem.Bytes)) {
			return true
		}
	}
	return false
}
