package arena

import (
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// extents are blocks behind another one ([driver.Extents]). Each is made when this rank or a peer first uses it.
type extents struct {
	arena       *Arena
	each, first int
	shortage    Shortage

	mu     sync.Mutex
	blocks []*Block // nil until they are made
}

// AllocExtents is Alloc for a block with count extents behind it, each of each bytes. An extent is a block of
// [Arena.AllocOnDemand] of which the first bytes are committed. The calls that give the block back give its extents
// back, too, and may keep them.
func (a *Arena) AllocExtents(n, count, each, first int) (Block, error) {
	b, err := a.Alloc(n)
	if err != nil {
		return Block{}, err
	}
	b.extents = &extents{arena: a, each: each, first: first, blocks: make([]*Block, count)}
	b.Behind = driver.Extents{Count: count, Each: each, Make: b.extents.make}
	return b, nil
}

// Extent returns an extent of the block. It returns an error if there is no memory for that, also if a peer found
// none.
func (b *Block) Extent(i int) ([]byte, error) {
	mem, err := b.extents.make(i)
	if err == nil {
		err = b.extents.shortage.Cause()
	}
	return mem.Bytes, err
}

// Shortage returns the error of the first extent for which there was no memory, nil if there is none.
func (b *Block) Shortage() error { return b.extents.shortage.Cause() }

// make returns the memory of an extent. Without room in the arena, peers write to memory of Go, and this rank finds
// the shortage: a request that fails would end the peer's connection.
func (e *extents) make(i int) (driver.Memory, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.blocks[i] == nil {
		b, err := e.arena.AllocOnDemand(e.each, e.first)
		if err != nil {
			e.shortage.note(err)
			return driver.Memory{Bytes: make([]byte, e.each)}, nil
		}
		b.Demand.Commit = e.shortage.Watch(b.Demand.Commit)
		e.blocks[i] = &b
	}
	return e.blocks[i].Memory, nil
}

// giveBack frees the extents. The arena may keep them. Precondition: nothing uses them any more.
func (e *extents) giveBack() (first error) {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, b := range e.blocks {
		if b == nil {
			continue
		}
		if err := e.arena.Keep(*b); first == nil {
			first = err
		}
		e.blocks[i] = nil
	}
	return first
}

// A Shortage is the first error by which there was no memory for peers' writes.
type Shortage struct{ err atomic.Pointer[error] }

// Watch returns a commit that remembers its error.
func (s *Shortage) Watch(commit func(n int) error) func(n int) error {
	return func(n int) error {
		err := commit(n)
		s.note(err)
		return err
	}
}

// note remembers an error, unless it is nil.
func (s *Shortage) note(err error) {
	if err != nil {
		s.err.CompareAndSwap(nil, &err)
	}
}

// Cause returns the error, nil if there is none.
func (s *Shortage) Cause() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}
