package fabric

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Devices that know memory only by its registration (driver.MemoryInfo.LocalKeys) cannot
// take a caller's slice as it is. Memory in a region has a key. A small transfer passes
// through a stage, which is registered memory of the fabric. For a large transfer the
// fabric registers the slice as long as the transfer lasts.
const (
	stageSize  = 64 << 10
	stageBatch = 16 // stages in one registration
	stageMost  = 8 * stageBatch
)

// stages holds a binding's stages that are not in use.
type stages struct {
	mu   sync.Mutex
	made int
	free []driver.Segment
	mrs  []*verbs.MR
}

// take returns a stage of stageSize bytes. It is not ok if too many are in use.
func (s *stages) take(ctx context.Context, pd *verbs.PD) (seg driver.Segment, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.free) == 0 && !s.grow(ctx, pd) {
		return driver.Segment{}, false
	}
	last := len(s.free) - 1
	seg, s.free = s.free[last], s.free[:last]
	return seg, true
}

// grow registers one batch of stages more. It returns false at the limit, or if the device refuses.
// Precondition: s.mu is held.
func (s *stages) grow(ctx context.Context, pd *verbs.PD) bool {
	if s.made == stageMost {
		return false
	}
	mr, err := pd.RegMR(ctx, memory.Heap(stageBatch*stageSize), driver.LocalWrite)
	if err != nil {
		return false
	}
	s.made += stageBatch
	s.mrs = append(s.mrs, mr)
	s.free = append(s.free, pieces(mr, stageSize)...)
	return true
}

// give takes back a stage, of which seg is a part.
func (s *stages) give(seg driver.Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, driver.Segment{Mem: seg.Mem[:stageSize], LKey: seg.LKey})
}

// close takes the registrations out. No operation uses a stage any more.
func (s *stages) close() []*verbs.MR {
	s.mu.Lock()
	defer s.mu.Unlock()
	mrs := s.mrs
	s.mrs, s.free, s.made = nil, nil, stageMost
	return mrs
}

// pieces cuts a region into segments of size bytes.
func pieces(mr *verbs.MR, size int) (segs []driver.Segment) {
	mem := mr.Bytes()
	for at := 0; at+size <= len(mem); at += size {
		segs = append(segs, driver.Segment{Mem: mem[at : at+size : at+size], LKey: mr.LKey()})
	}
	return segs
}

// A lease holds the memory of a transfer as the device knows it.
type lease struct {
	borrowed bool           // the memory is the caller's
	stage    driver.Segment // the stage in place of the caller's memory, if not empty
	dst      []byte         // the destination of arrived once the device filled it
	mr       *verbs.MR      // the memory's registration for this operation
	arrived  []byte         // the bytes for dst, or for its places
	places   []blocks.Run
}

// keepPlaces is the number of places for which a lease keeps memory for the next operation.
const keepPlaces = 64

// lend makes mem segment i of o's requests, which the device fills or sends. With stage it
// uses a stage even if the device can take mem itself. A write's source is then free at
// once.
func (o *op) lend(i int, mem []byte, fill, stage bool) error {
	b := o.bind
	seg, ok := driver.Segment{Mem: mem}, !b.info.Memory.LocalKeys && !stage || len(mem) == 0
	if !ok && !stage {
		seg, ok = o.f.regions.segment(b, mem)
	}
	if o.borrowed = ok && len(mem) > 0; ok {
		o.seg[i] = seg
		return nil
	}
	if len(mem) <= stageSize && o.throughStage(i, mem, fill) {
		return nil
	}
	return o.register(i, mem, fill)
}

// throughStage has request i use a stage in place of mem, which no device knows. With fill the stage is
// copied to mem on completion, else mem to the stage now. It returns false without a free stage.
func (o *op) throughStage(i int, mem []byte, fill bool) bool {
	if !o.takeStage(i, len(mem)) {
		return false
	}
	if fill {
		o.dst, o.arrived = mem, o.stage.Mem
	} else {
		copy(o.stage.Mem, mem)
	}
	return true
}

// takeStage makes n bytes of a stage segment i, if there is a stage.
func (o *op) takeStage(i, n int) bool {
	stage, ok := o.bind.stages.take(o.f.ctx, o.bind.pd)
	if ok {
		stage.Mem = stage.Mem[:n]
		o.peer.Stats.staged.Add(uint64(n))
		o.stage, o.seg[i] = stage, stage
	}
	return ok
}

// fillBlocks has n bytes arrive in segment i, for places in dst. Precondition: the device takes
// memory without a key.
func (o *op) fillBlocks(i int, dst []byte, places []blocks.Run, n int) {
	if !o.takeStage(i, n) {
		o.seg[i] = driver.Segment{Mem: make([]byte, n)}
	}
	o.dst, o.arrived, o.places = dst, o.seg[i].Mem, append(o.places[:0], places...)
}

// register has the device know mem until the operation's end, or a copy of it if the device refused the region.
func (o *op) register(i int, mem []byte, fill bool) (err error) {
	if o.f.regions.refused(o.bind, mem) {
		own := make([]byte, len(mem))
		o.peer.Stats.staged.Add(uint64(len(mem)))
		if fill {
			o.dst, o.arrived = mem, own
		} else {
			copy(own, mem)
		}
		mem = own
	}
	access := driver.Access(0)
	if fill {
		access = driver.LocalWrite
	}
	o.mr, err = o.bind.pd.RegMR(o.f.ctx, driver.Memory{Kind: driver.KindHeap, Bytes: mem, FD: -1}, access)
	if err != nil {
		return err
	}
	o.borrowed = true
	o.seg[i] = driver.Segment{Mem: mem, LKey: o.mr.LKey()}
	return nil
}

// fillBorrowed copies the bytes that arrived elsewhere to the caller.
func (l *lease) fillBorrowed() {
	if len(l.places) > 0 {
		blocks.Unpack(l.dst, 0, l.places, l.arrived)
		return
	}
	copy(l.dst, l.arrived)
}

// giveBack ends the lease.
func (l *lease) giveBack(b *binding) {
	if l.stage.Mem != nil {
		b.stages.give(l.stage)
	}
	if l.mr != nil {
		// The memory is the caller's again even if this fails.
		_ = l.mr.Close()
	}
	places := l.places[:0]
	if cap(places) > keepPlaces {
		places = nil
	}
	*l = lease{places: places}
}
