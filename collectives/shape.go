package collectives

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A shape is what calls have in common that differ in lengths and roots only.
// Programs make few, and most of the time the one that they made before.
type shape struct {
	shapeKey
	of   string // as fabric.Call has it
	hash uint64
	err  error
}

type shapeKey struct {
	typ       reflect.Type
	op        string
	ordered   bool
	algorithm string
}

// shapes are those that a rank has met.
type shapes struct {
	latest atomic.Pointer[shape]
	mu     sync.Mutex
	all    map[shapeKey]*shape
	tuned  string // by which table choices are made, the same at all members
	boards bool   // they may be used, the same at all members
}

// of returns the shape of a call.
func (s *shapes) of(c *Call) *shape {
	key := shapeKey{c.typ, c.op, c.ordered, c.algorithm}
	if latest := s.latest.Load(); latest != nil && latest.shapeKey == key {
		return latest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[key]
	if found == nil {
		found = s.make(key)
		if s.all == nil {
			s.all = map[shapeKey]*shape{}
		}
		s.all[key] = found
	}
	s.latest.Store(found)
	return found
}

func (s *shapes) make(key shapeKey) *shape {
	made := &shape{shapeKey: key}
	if made.of, made.err = element.DescribeType(key.typ); made.err != nil {
		return made
	}
	if key.op != "" {
		made.of += ", " + key.op
	}
	if key.ordered {
		made.of += ", deterministic"
	}
	if key.algorithm != "" {
		made.of += ", by " + key.algorithm
	}
	if s.tuned != "" {
		made.of += ", tuned by " + s.tuned
	}
	if !s.boards {
		made.of += ", without boards"
	}
	made.hash = fnvOffset
	for _, b := range []byte(made.of) {
		made.hash = mix(made.hash, uint64(b))
	}
	return made
}

// call is what members compare of c.
func (s *shape) call(c *Call) fabric.Call {
	mark := mix(mix(mix(s.hash, uint64(c.kind)), uint64(c.root)), uint64(c.count))
	switch c.kind {
	case fabric.AllGatherV:
		mark = mixAll(mark, c.recvBlocks.Counts)
	case fabric.ReduceScatterV:
		mark = mixAll(mark, c.sendBlocks.Counts)
	}
	return fabric.Call{Kind: c.kind, Root: c.root, Count: c.count, Of: s.of, Mark: mark}
}

// The hash of Fowler, Noll and Vo, over words.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func mix(hash, word uint64) uint64 { return (hash ^ word) * fnvPrime }

func mixAll(hash uint64, words []int) uint64 {
	for _, w := range words {
		hash = mix(hash, uint64(w))
	}
	return hash
}
