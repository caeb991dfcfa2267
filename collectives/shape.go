package collectives

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/team"
)

// A shape describes calls that differ in lengths and roots only. Programs make few shapes.
type shape struct {
	shapeKey
	of    string // as team.Call has it
	hash  uint64
	err   error
	calls map[place]*described // calls that are kept
}

// A shapeKey has the arguments that calls of one shape share: all but root, lengths and buffers.
type shapeKey struct {
	typ       reflect.Type
	op        string
	single    bool // op combines single elements
	ordered   bool
	algorithm string
}

// A place holds the differences between calls of one shape, as far as members compare them.
type place struct {
	of          *collective
	root, count int
	blocks      uint64 // a hash of their counts, where all members know them
}

// A described call holds the properties that members compare.
type described struct {
	*shape
	place
	call team.Call
	kept bool // for the next call like it
}

// A rank keeps the descriptions of keptMost calls, and the latest of them at hand. It makes
// the descriptions of further calls each time, in the memory of one that is done.
const (
	keptMost = 1 << 10
	handBits = 6
)

// shapes holds the shapes of a rank's calls so far, and the descriptions of these calls.
type shapes struct {
	hand   [1 << handBits]atomic.Pointer[described]
	mu     sync.Mutex
	all    map[shapeKey]*shape
	kept   int
	spare  sync.Pool
	tuned  string // names the table of measurements; the same at all members
	boards bool   // calls may use boards; the same at all members
}

// describe returns the description of a call. The caller gives it back by release.
func (s *shapes) describe(c *Call) (*described, error) {
	at := place{c.of, c.root, c.count, c.blocksHash()}
	hand := &s.hand[at.slot(c.size)]
	if d := hand.Load(); d != nil && d.place == at && d.fits(c) {
		return d, nil
	}
	return s.fetch(c, at, hand)
}

// fetch describes a call that is not at hand.
func (s *shapes) fetch(c *Call, at place, hand *atomic.Pointer[described]) (*described, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(c)
	if of.err != nil {
		return nil, of.err
	}
	d := of.calls[at]
	if d == nil {
		d = s.add(of, at)
	}
	if d.kept {
		hand.Store(d)
	}
	return d, nil
}

// slot returns the index of a call's description at hand.
func (p *place) slot(size int) uint64 {
	const golden = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio, which scatters (Knuth)
	word := uint64(p.of.family) ^ uint64(p.count)<<8 ^ uint64(size)<<40 ^ uint64(p.root)<<48 ^ p.blocks
	return word * golden >> (64 - handBits)
}

// fits reports whether a call has the shape.
func (s *shape) fits(c *Call) bool {
	return element.Same(s.typ, c.typ) && s.op == c.op && s.single == c.single && s.ordered == c.ordered && s.algorithm == c.algorithm
}

// of returns the shape of a call. Called with the mutex held.
func (s *shapes) of(c *Call) *shape {
	key := shapeKey{c.typ, c.op, c.single, c.ordered, c.algorithm}
	found := s.all[key]
	if found == nil {
		found = s.make(key)
		if s.all == nil {
			s.all = map[shapeKey]*shape{}
		}
		s.all[key] = found
	}
	return found
}

// add describes a call that is not kept yet. Called with the mutex held.
func (s *shapes) add(of *shape, at place) *described {
	if s.kept == keptMost {
		d, _ := s.spare.Get().(*described)
		if d == nil {
			d = new(described)
		}
		*d = described{shape: of, place: at, call: of.call(at)}
		return d
	}
	d := &described{shape: of, place: at, call: of.call(at), kept: true}
	of.calls[at] = d
	s.kept++
	return d
}

// release gives the description of a call back after its end.
func (s *shapes) release(d *described) {
	if !d.kept {
		s.spare.Put(d)
	}
}

// make describes a kind of call, for the comparison of calls among members, and hashes the
// description.
func (s *shapes) make(key shapeKey) *shape {
	made := &shape{shapeKey: key, calls: map[place]*described{}}
	if made.of, made.err = element.DescribeType(key.typ); made.err != nil {
		return made
	}
	if key.op != "" {
		made.of += ", " + key.op
	}
	if key.single {
		made.of += " of single elements"
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
	made.hash = mixText(fnvOffset, made.of)
	return made
}

// call returns the description of calls at a place, as members compare it.
func (s *shape) call(at place) team.Call {
	call := team.Call{Name: at.of.name, Root: team.NoRoot, Count: at.count, Of: s.of, Blocks: at.blocks}
	if at.of.is(rooted) {
		call.Root = at.root
	}
	call.Hash = mix(mix(mix(mixText(s.hash, call.Name), uint64(call.Root)), uint64(call.Count)), call.Blocks)
	return call
}

// blocksHash is a hash of the counts that all members must know.
func (c *Call) blocksHash() uint64 {
	switch {
	case !c.of.is(varied) || c.count == team.Varied:
		return 0
	case c.of.buffers == gathers:
		return c.recvBlocks.hash()
	}
	return c.sendBlocks.hash()
}

// hash differs for blocks of other counts, and for blocks with offsets and without: members
// choose by both.
func (b *Blocks) hash() uint64 {
	hash := mixAll(fnvOffset, b.Counts)
	if b.Offsets != nil {
		hash = mix(hash, 1)
	}
	return hash
}

// The hash of Fowler, Noll and Vo, over words.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func mix(hash, word uint64) uint64 { return (hash ^ word) * fnvPrime }

// mixAll adds words to a hash.
func mixAll(hash uint64, words []int) uint64 {
	for _, w := range words {
		hash = mix(hash, uint64(w))
	}
	return hash
}

// mixText adds a text to a hash.
func mixText(hash uint64, text string) uint64 {
	for i := range len(text) {
		hash = mix(hash, uint64(text[i]))
	}
	return hash
}
