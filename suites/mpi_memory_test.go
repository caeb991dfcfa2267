package suites

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// A listNode is a node of a list over all ranks.
type listNode struct {
	Owner, Number int64
	Next          window.Pointer[listNode]
}

func TestLockedList(t *testing.T) { everywhere(t, 3, lockedList) }

// lockedList: each rank attaches nodes and appends them to one list, whose end it looks for under a
// lock. At the end the list has every node once.
func lockedList(ctx context.Context, r *testjob.Rank) {
	const each = 4
	nodes := allocate[listNode](ctx, r, 0, window.WithAttachments(each))
	head := allocate[window.Pointer[listNode]](ctx, r, 1)
	for i := range each {
		p, mine, err := nodes.Attach(ctx, 1)
		r.NoError(err)
		mine[0] = listNode{Owner: int64(r.Me), Number: int64(i)}
		held, err := head.Lock(ctx, 0, window.Exclusive)
		r.NoError(err)
		first, err := head.GetValue(ctx, 0, 0)
		r.NoError(err)
		if first.IsNil() {
			r.NoError(head.PutValue(ctx, 0, 0, p))
		} else {
			last := first
			for next := first; !next.IsNil(); {
				last = next
				next = readNode(ctx, r, nodes, last).Next
			}
			a, err := nodes.Open(ctx, last)
			r.NoError(err)
			v, err := a.GetValue(ctx, a.Target, a.Index)
			r.NoError(err)
			v.Next = p
			r.NoError(a.PutValue(ctx, a.Target, a.Index, v))
			r.NoError(a.Close(ctx))
		}
		r.NoError(held.Unlock(ctx))
	}
	r.NoError(head.Fence(ctx))
	seen := map[[2]int64]int{}
	first, err := head.GetValue(ctx, 0, 0)
	r.NoError(err)
	for p := first; !p.IsNil(); {
		n := readNode(ctx, r, nodes, p)
		seen[[2]int64{n.Owner, n.Number}]++
		p = n.Next
	}
	r.Len(seen, each*r.N)
	r.NoError(head.Fence(ctx))
	r.NoError(nodes.Free(ctx))
}

func readNode(ctx context.Context, r *testjob.Rank, nodes *window.Window[listNode], p window.Pointer[listNode]) listNode {
	a, err := nodes.Open(ctx, p)
	r.NoError(err)
	n, err := a.GetValue(ctx, a.Target, a.Index)
	r.NoError(err)
	r.NoError(a.Close(ctx))
	return n
}

func TestAppendedList(t *testing.T) { everywhere(t, 3, appendedList) }

// appendedList: nodes are elements, and links are one number for rank and index: a rank appends by
// compare-and-swap of the last node's link.
func appendedList(ctx context.Context, r *testjob.Rank) {
	const each = 10
	links := allocate[int64](ctx, r, each+1) // element 0 of rank 0 is the head
	at := int64(0)                           // rank*1000 + index
	for i := range int64(each) {
		mine := int64(r.Me)*1000 + i + 1
		for {
			seen, err := window.CompareSwap(ctx, links, int(at/1000), int(at%1000), 0, mine)
			r.NoError(err)
			if seen == 0 {
				break
			}
			at = seen
		}
	}
	r.NoError(links.Fence(ctx))
	seen := map[int64]bool{}
	for p, err := links.GetValue(ctx, 0, 0); p != 0; p, err = links.GetValue(ctx, int(p/1000), int(p%1000)) {
		r.NoError(err)
		r.False(seen[p], "node %d twice", p)
		seen[p] = true
	}
	r.Len(seen, each*r.N)
	r.NoError(links.Fence(ctx))
}

func TestContendedLock(t *testing.T) { everywhere(t, 4, contendedLock) }

// contendedLock: ranks add to two elements under an exclusive lock, and compare both under a shared one.
func contendedLock(ctx context.Context, r *testjob.Rank) {
	w, err := window.AllocateV[int64](ctx, r.World, 2*(1-min(r.Me, 1)))
	r.NoError(err)
	both := make([]int64, 2)
	for i := range 12 {
		mode := window.Exclusive
		if (i+r.Me)%3 == 0 {
			mode = window.Shared
		}
		held, err := w.Lock(ctx, 0, mode)
		r.NoError(err)
		r.NoError(w.Get(ctx, 0, 0, both))
		r.Equal(both[0], both[1])
		if mode == window.Exclusive {
			r.NoError(w.PutValue(ctx, 0, 0, both[0]+1))
			r.NoError(w.PutValue(ctx, 0, 1, both[1]+1))
		}
		r.NoError(held.Unlock(ctx))
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.Equal([]int64{32, 32}, w.Local())
	}
	r.NoError(w.Fence(ctx))
}

func TestQueueLock(t *testing.T) { everywhere(t, 3, queueLock) }

// queueLock: ranks queue at a tail and wait for an element of their own, which the rank before sets.
func queueLock(ctx context.Context, r *testjob.Rank) {
	const tail, next, blocked, counter = 0, 1, 2, 3
	w := allocate[int64](ctx, r, 4) // ranks count from 1 in links
	me := int64(r.Me + 1)
	for range 15 {
		r.NoError(window.AtomicStore(ctx, w, r.Me, next, 0))
		r.NoError(window.AtomicStore(ctx, w, r.Me, blocked, 0))
		before, err := window.Swap(ctx, w, 0, tail, me)
		r.NoError(err)
		if before != 0 {
			r.NoError(window.AtomicStore(ctx, w, int(before-1), next, me))
			waitFor(ctx, r, w, blocked, 1)
		}
		v, err := w.GetValue(ctx, 0, counter)
		r.NoError(err)
		r.NoError(w.PutValue(ctx, 0, counter, v+1))
		r.NoError(w.Flush(ctx, 0))
		last, err := window.CompareSwap(ctx, w, 0, tail, me, 0)
		r.NoError(err)
		if last == me {
			continue
		}
		waitFor(ctx, r, w, next, 1)
		after, err := window.AtomicLoad(ctx, w, r.Me, next)
		r.NoError(err)
		r.NoError(window.AtomicStore(ctx, w, int(after-1), blocked, 1))
		goruntime.Gosched()
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.EqualValues(15*r.N, w.Local()[counter])
	}
	r.NoError(w.Fence(ctx))
}

func TestStructAtOffset(t *testing.T) { everywhere(t, 2, structAtOffset) }

// structAtOffset: a rank attaches structs, and the other gets one and a field of the next.
func structAtOffset(ctx context.Context, r *testjob.Rank) {
	type record struct {
		Kind int32
		X, Y float64
		Tags [3]int16
	}
	w := allocate[record](ctx, r, 0, window.WithAttachments(1))
	heads := allocate[window.Pointer[record]](ctx, r, 1)
	p, mine, err := w.Attach(ctx, 5)
	r.NoError(err)
	for i := range mine {
		mine[i] = record{int32(i), float64(r.Me), float64(i) / 2, [3]int16{1, 2, int16(i)}}
	}
	r.NoError(heads.PutValue(ctx, r.Right(), 0, p.Add(3)))
	r.NoError(heads.Fence(ctx))
	a, err := w.Open(ctx, heads.Local()[0])
	r.NoError(err)
	got, err := a.GetValue(ctx, a.Target, a.Index)
	r.NoError(err)
	r.Equal(record{3, float64(r.Left()), 1.5, [3]int16{1, 2, 3}}, got)
	got.Y = 77
	r.NoError(a.PutValue(ctx, a.Target, a.Index+1, got))
	r.NoError(a.Close(ctx))
	r.NoError(heads.Fence(ctx))
	r.Equal(77.0, mine[4].Y)
	r.NoError(w.Free(ctx))
}

func TestAttachedSums(t *testing.T) { everywhere(t, 3, attachedSums) }

// attachedSums: all ranks add to memory that rank 0 has attached, and detaches once they are done.
func attachedSums(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 0, window.WithAttachments(1))
	heads := allocate[window.Pointer[int64]](ctx, r, 1)
	var mine []int64
	var p window.Pointer[int64]
	if r.Me == 0 {
		var err error
		p, mine, err = w.Attach(ctx, 10)
		r.NoError(err)
		for target := range r.N {
			r.NoError(heads.PutValue(ctx, target, 0, p))
		}
	}
	r.NoError(heads.Fence(ctx))
	a, err := w.Open(ctx, heads.Local()[0])
	r.NoError(err)
	for range 20 {
		r.NoError(window.Accumulate(ctx, a.Window, a.Target, a.Index, filled(10, 1), window.Sum[int64]()))
	}
	r.NoError(a.Close(ctx))
	r.NoError(heads.Fence(ctx))
	if r.Me == 0 {
		for i, v := range mine {
			r.EqualValues(20*r.N*(i+1), v)
		}
		r.NoError(w.Detach(ctx, p))
	}
	r.NoError(w.Free(ctx))
}

func TestTransposed(t *testing.T) { everywhere(t, 2, transposed) }

// transposed: rank 0 puts the columns of its matrix into the rows of rank 1's, in one call.
func transposed(ctx context.Context, r *testjob.Rank) {
	const rows, columns = 13, 7
	w := allocate[int64](ctx, r, rows*columns)
	if r.Me == 0 {
		var places []int
		for column := range columns {
			for row := range rows {
				places = append(places, row*columns+column)
			}
		}
		r.NoError(w.PutBlocks(ctx, 1, 0, window.Blocks{}, filled(rows*columns, 0), window.Indexed(places, 1)))
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 1 {
		for i, v := range w.Local() {
			r.EqualValues(i%rows*columns+i/rows, v)
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestSharedArray(t *testing.T) {
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 3}} {
		t.Run(c.String(), func(t *testing.T) { c.Run(t, sharedArray) })
		t.Run(c.String()+" with gaps", func(t *testing.T) { c.Run(t, sharedWithGaps) })
	}
}

// sharedArray: each rank stores into its neighbor's part of one array, by index, by put and by blocks.
func sharedArray(ctx context.Context, r *testjob.Rank) {
	const n = 6
	host, err := r.World.SplitHost(ctx)
	r.NoError(err)
	w, err := window.AllocateShared[int64](ctx, host, n)
	r.NoError(err)
	whole, err := w.Whole()
	r.NoError(err)
	right := r.Right()
	whole[n*right] = int64(100 + right)
	r.NoError(w.PutValue(ctx, right, 1, int64(200+right)))
	r.NoError(w.PutBlocks(ctx, right, 2, window.Strided(2, 1, 2), []int64{1, 2}, window.Blocks{}))
	r.NoError(w.Fence(ctx))
	r.Equal([]int64{int64(100 + r.Me), int64(200 + r.Me), 1, 0, 2, 0}, w.Local())
	r.Len(whole, n*host.Size())
	r.NoError(w.Free(ctx))
	r.NoError(host.Free(ctx))
}

// sharedWithGaps: only odd ranks have elements.
func sharedWithGaps(ctx context.Context, r *testjob.Rank) {
	w, err := window.AllocateShared[int64](ctx, r.World, r.Me%2*4)
	r.NoError(err)
	r.Equal(4, w.Len(1))
	r.Zero(w.Len(0))
	r.NoError(window.AtomicAdd(ctx, w, 1, 3, int64(r.Me+1)))
	r.ErrorIs(w.PutValue(ctx, 0, 0, 1), window.ErrRange)
	r.NoError(w.Fence(ctx))
	whole, err := w.Whole()
	r.NoError(err)
	r.EqualValues(r.N*(r.N+1)/2, whole[3])
	r.NoError(w.Free(ctx))
}
