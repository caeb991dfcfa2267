package board

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/wait"
)

// tiny has every threshold within a few hundred bytes.
var tiny = tuning{small: 60, large: 512, last: 128, alone: 256, place: 192, pipe: 64, pipeMost: 256, lastOpens: 4, block: 48, single: 2}

// arenaRegion is the region of each member's memory that all members reach.
const arenaRegion = 7

// A rig is a team in one process.
type rig struct {
	boards []*Board
	mem    [][]byte
	bells  []*wait.Bell
	arenas [][]byte
	found  [][]int       // by member, the boards that it found, in that order
	made   atomic.Uint64 // calls, by all members: a watchdog's steps
}

func newRig(t testing.TB, n int, with tuning) *rig {
	t.Helper()
	r := &rig{found: make([][]int, n)}
	for range n {
		r.mem = append(r.mem, lineAligned(HeadSize+buffersSize(with.large)))
		r.bells = append(r.bells, wait.NewLocal())
		r.arenas = append(r.arenas, make([]byte, 512*with.large))
	}
	for rank := range n {
		b, err := newWith(Config{Rank: rank, Size: n, Mem: r.mem[rank], Find: r.find(rank),
			View: func(m int, region, offset uint64, n int) []byte {
				if b := r.boards[rank]; b.turn > 0 && b.peers[rank].using.Load() == b.turn {
					t.Error("memory is sought, which may last, while others' is borrowed")
				}
				return r.view(m, region, offset, n)
			},
			Await: waitOn(r.bells[rank])}, with)
		require.NoError(t, err)
		r.boards = append(r.boards, b)
	}
	return r
}

// waitOn returns an Await on a bell, with the pauses that a Board needs.
func waitOn(b *wait.Bell) func(context.Context, func() bool) error {
	return func(ctx context.Context, ready func() bool) error {
		return b.WaitWith(ctx, wait.Stored(), ready)
	}
}

// find returns the Find of a member. It counts the boards that the member found.
func (r *rig) find(rank int) func(context.Context, []int, Found) error {
	return func(_ context.Context, members []int, found Found) error {
		for _, m := range members {
			r.found[rank] = append(r.found[rank], m)
			if err := found(m, r.mem[m], r.bells[m]); err != nil {
				return err
			}
		}
		return nil
	}
}

// reachAll has each member find all boards, for tests that look at them.
func (r *rig) reachAll(t require.TestingT) *rig {
	for _, b := range r.boards {
		require.NoError(t, b.reachAll(context.Background()))
	}
	return r
}

func (r *rig) view(member int, region, offset uint64, n int) []byte {
	if region != arenaRegion || offset > uint64(len(r.arenas[member])) || uint64(n) > uint64(len(r.arenas[member]))-offset {
		return nil
	}
	return r.arenas[member][offset:][:n:n]
}

// each runs f for every member at once and returns the first error.
func (r *rig) each(f func(b *Board) error) error {
	var all errgroup.Group
	for _, b := range r.boards {
		all.Go(func() error { return f(b) })
	}
	return all.Wait()
}

// lineAligned returns n bytes that begin at a multiple of a line.
func lineAligned(n int) []byte {
	mem := make([]byte, n+lineSize)
	for !aligned(mem) {
		mem = mem[1:]
	}
	return mem[:n:n]
}

// An operator commutes or not. One is not even associative: results are those of
// one order of combination.
type operator struct {
	name    string
	elem    int
	combine Combine
}

var operators = []operator{
	{"sum of int64", 8, func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 8 {
			put64(dst[i:], get64(left[i:])+get64(right[i:]))
		}
	}},
	{"what only one order of combination gives, as with floats", 8, func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 8 {
			put64(dst[i:], 31*get64(left[i:])+get64(right[i:]))
		}
	}},
	{"composition of affine maps", 16, func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 16 {
			a, b, c, d := get64(left[i:]), get64(left[i+8:]), get64(right[i:]), get64(right[i+8:])
			put64(dst[i:], a*c)
			put64(dst[i+8:], a*d+b)
		}
	}},
	{"maximum of bytes", 1, func(dst, left, right []byte) {
		for i := range dst {
			dst[i] = max(left[i], right[i])
		}
	}},
}

func get64(b []byte) uint64    { return binary.NativeEndian.Uint64(b) }
func put64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

// fill writes bytes that depend on the seed and on the member.
func fill(mem []byte, seed uint64, member int) {
	x := seed*0x9e3779b97f4a7c15 + uint64(member+1)*0xbf58476d1ce4e5b9
	next := func() uint64 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x
	}
	for ; len(mem) >= 8; mem = mem[8:] {
		put64(mem, next())
	}
	for i := range mem {
		mem[i] = byte(next() >> 32)
	}
}
