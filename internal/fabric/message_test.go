package fabric

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

func TestMessageEncodesItsRequestAndResponse(t *testing.T) {
	at := driver.RemoteAddr{Addr: 1 << 40, RKey: driver.Key{Hi: 3, Lo: 1 << 63}}
	a := Atomic{Op: driver.AtomicCmpSwap, Width: 4, Operand: 1 << 62, Compare: 9}
	var l message
	l.request(5, 6, at, a)
	got, ok := l.atomic()
	require.True(t, ok)
	require.Equal(t, a, got)
	require.Equal(t, at, l.address())
	l.respond(driver.RemoteAccess, 77, 78)
	require.EqualValues(t, kindResponse, l[messageKind])
	require.Equal(t, driver.RemoteAccess, driver.Status(l[messageStatus]))
	require.EqualValues(t, []uint64{5, 6, 77, 78}, []uint64{l.uint(messageID), l.uint(messageUse), l.uint(messageValue), l.uint(messageSecond)})
}

// A late completion of a request must not end the operation's next use.
func TestRequestIDFindsOneUseOfItsOperation(t *testing.T) {
	b := &binding{}
	p := &Peer{f: &Fabric{}, bind: b}
	o := b.ops.take(&Remote{Peer: p})
	o.request(0, driver.RemoteAddr{}, Atomic{Op: driver.AtomicAdd, Width: 8})
	id := o.wr[0].ID
	require.Same(t, o, b.ops.find(id))
	o.finish()
	b.ops.give(o)
	again := b.ops.take(&Remote{Peer: p})
	require.Same(t, o, again)
	require.Nil(t, b.ops.find(id))
	require.Same(t, o, b.ops.find(o.id))
	again.leave()
	again.finish()
	again.finish() // a response behind the failure
	require.Same(t, again, b.ops.take(&Remote{Peer: p}))
	require.NotSame(t, again, b.ops.take(&Remote{Peer: p}), "it was given back once")
}

// FuzzMessage decodes any bytes of a peer. If they name a word, it is aligned and all in a
// region. The bytes of a move are all in a region, and in a stage.
func FuzzMessage(f *testing.F) {
	const size = 4096
	region, b := fuzzedRegion(f, size)
	mr := region.mrs[b]
	var good message
	good.request(1, 2, mr.Remote(8), Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1})
	f.Add(good[:])
	good.request(1, 2, mr.Remote(size-4), Atomic{Op: driver.AtomicSwap, Width: 8})
	f.Add(good[:])
	good.request(1, 2, mr.Remote(-1), Atomic{Op: driver.AtomicStore, Width: 1})
	f.Add(good[:])
	good.request(1, 2, mr.Remote(size-16), Atomic{Op: driver.AtomicAddComplex, Width: 16})
	f.Add(good[:])
	stages := &stagesAt{all: map[*binding][]stage{}}
	region.bounces = stages // which closes them
	_, err := stages.open(f.Context(), b, "x", inboundKey{1, 0})
	require.NoError(f, err)
	for _, n := range []int{0, size, size + 1, stageSize + 1, -1} {
		good.move(1, 2, moveIn, mr.Remote(0), uint64(n), n)
		f.Add(good[:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var l message
		copy(l[:], data)
		n := int(l.uint(messageCompare))
		if r, mem := region.f.regions.bytes(b, l.address(), n); r != nil {
			_, inside := mr.SegmentOf(mem)
			require.True(t, inside)
			require.Len(t, mem, n)
		}
		if stage := stages.bytes(b, l.uint(messageOperand), n); stage != nil {
			require.Len(t, stage, n)
			require.Zero(t, l.uint(messageOperand))
		}
		a, ok := l.atomic()
		word := region.f.regions.word(b, l.address(), int(a.Width))
		if !ok || word == nil {
			return
		}
		require.Len(t, word, int(a.Width))
		seg, inside := mr.SegmentOf(word)
		require.True(t, inside, "%v", seg)
		require.Zero(t, (l.address().Addr-mr.Remote(0).Addr)%uint64(a.Width))
	})
}

func TestStagesOfAConnectionEndWithIt(t *testing.T) {
	region, b := fuzzedRegion(t, 64)
	region.bounces = &stagesAt{all: map[*binding][]stage{}}
	open := func(user inboundKey) uint64 {
		rep, err := region.bounces.open(t.Context(), b, "x", user)
		require.NoError(t, err)
		return rep.Number
	}
	main, queue := inboundKey{1, 0}, inboundKey{1, 7}
	require.EqualValues(t, 0, open(main))
	for range 3 {
		qp, mail, err := region.f.newQP(t.Context(), b, false)
		require.NoError(t, err)
		region.f.admit(queue, &inbound{b, qp, mail})
		require.EqualValues(t, 1, open(queue))
		require.EqualValues(t, 2, open(queue))
		region.f.admit(queue, nil) // the connection ends
		require.Nil(t, region.bounces.bytes(b, 1, 8))
		require.Len(t, region.bounces.bytes(b, 0, 8), 8)
	}
	require.NoError(t, region.Close())
	_, err := region.bounces.open(t.Context(), b, "x", main)
	require.ErrorContains(t, err, "closed")
}

func fuzzedRegion(f testing.TB, size int) (*Region, *binding) {
	fab, err := New(context.Background(), Config{Heap: 1 << 20, Providers: []driver.Provider{loop.New()}}, nil)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, fab.Close()) })
	region, err := fab.Register(context.Background(), "x", memory.Heap(size))
	require.NoError(f, err)
	return region, fab.bindings[0]
}
