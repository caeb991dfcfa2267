//go:build linux

package shm_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestWriteAndReadMoveBytesAtAnySizeAndOffset(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	for _, n := range []int{0, 1, 7, 8, 9, 64, page, page + 1, 100_000} {
		for _, offset := range []uint64{0, 1, 8, 4093} {
			t.Run(fmt.Sprint(n, "@", offset), func(t *testing.T) {
				src := pattern(n, int(offset))
				a.do(write(b.at(offset), src))
				require.Equal(t, src, b.arena.Bytes()[offset:offset+uint64(n)])
				dst := make([]byte, n)
				require.Equal(t, n, a.do(read(b.at(offset), dst)).Bytes)
				require.Equal(t, src, dst)
			})
		}
	}
}

func TestWriteGathersAndReadScatters(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	src := pattern(100, 1)
	a.do(write(b.at(3), src[:10], nil, src[10:11], src[11:]))
	require.Equal(t, src, b.arena.Bytes()[3:103])
	dst := make([]byte, 100)
	a.do(read(b.at(3), dst[:1], dst[1:99], dst[99:]))
	require.Equal(t, src, dst)
}

func TestUnsignaledSuccessIsSilent(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	a.post(write(b.at(0), word(5)))
	a.nothing()
	require.Equal(t, word(5), b.arena.Bytes()[:8])
	b.nothing()
}

func TestBadRemoteAddressesAreRefusedAndMoveTheQPToErr(t *testing.T) {
	heap := memory.Heap(64)
	cases := map[string]func(a, b *side) driver.WorkRequest{
		"zero key": func(_, b *side) driver.WorkRequest { return write(driver.RemoteAddr{}, word(1)) },
		"key out of range": func(_, b *side) driver.WorkRequest {
			return write(driver.RemoteAddr{RKey: driver.Key{Lo: 1 << 31}}, word(1))
		},
		"wrong secret": func(_, b *side) driver.WorkRequest {
			at := b.at(0)
			at.RKey.Hi++
			return write(at, word(1))
		},
		"wrong generation": func(_, b *side) driver.WorkRequest {
			at := b.at(0)
			at.RKey.Lo += 1 << 32
			return write(at, word(1))
		},
		"one byte too far": func(_, b *side) driver.WorkRequest { return write(b.at(1<<20-7), word(1)) },
		"wrapping":         func(_, b *side) driver.WorkRequest { return read(b.at(math.MaxUint64-3), word(1)) },
		"closed": func(_, b *side) driver.WorkRequest {
			require.NoError(b.t, b.mr.Close())
			return read(b.at(0), word(1))
		},
		"no right to write": func(_, b *side) driver.WorkRequest {
			return write(b.register(b.arena.Memory(0, 64), driver.RemoteRead), word(1))
		},
		"no right to read": func(_, b *side) driver.WorkRequest {
			return read(b.register(b.arena.Memory(0, 64), driver.RemoteWrite), word(1))
		},
		"no right to atomics": func(_, b *side) driver.WorkRequest {
			at := b.register(b.arena.Memory(0, 64), driver.RemoteWrite|driver.RemoteRead)
			return driver.WorkRequest{Op: driver.OpFetchAdd, Remote: at}
		},
		"heap": func(_, b *side) driver.WorkRequest { return write(b.register(heap, driver.LocalWrite), word(1)) },
	}
	for name, bad := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t, sideConfig{})
			a.do(write(b.at(0), word(7))) // the key is known by now
			wr := bad(a, b)
			wr.ID = 1
			follower := write(b.at(8), word(9))
			follower.ID = 2
			a.post(wr, follower)
			wc := a.next()
			require.Equal(t, driver.RemoteAccess, wc.Status, "%v", wc.Err)
			require.EqualValues(t, 1, wc.ID)
			require.ErrorIs(t, wc.Err, driver.ErrAccess)
			wc = a.next()
			require.Equal(t, driver.Flushed, wc.Status)
			require.EqualValues(t, 2, wc.ID)
			require.Equal(t, word(7), b.arena.Bytes()[:8])
			require.Equal(t, word(0), b.arena.Bytes()[8:16], "the follower has no effect")
		})
	}
}

// register returns the address of the start of mem.
func (s *side) register(mem driver.Memory, access driver.Access) driver.RemoteAddr {
	s.t.Helper()
	mr, err := s.device.RegMR(context.Background(), mem, access)
	require.NoError(s.t, err)
	return driver.RemoteAddr{Addr: mr.Addr(), RKey: mr.RKey()}
}

func TestRegistrationIsRefusedWhereNoPeerCouldMap(t *testing.T) {
	a := newSide(t, sideConfig{})
	ctx := context.Background()
	mem := a.arena.Memory(0, 64)
	mem.FD = 0
	_, err := a.device.RegMR(ctx, mem, driver.AllAccess)
	require.ErrorIs(t, err, memory.ErrUnsealed)
	mem = a.arena.Memory(0, 64)
	mem.Offset = a.arena.Size() - 63
	_, err = a.device.RegMR(ctx, mem, driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestKeysAreNeverZeroAndNeverRepeat(t *testing.T) {
	a := newSide(t, sideConfig{})
	seen := map[driver.Key]bool{}
	for range 1000 {
		mr, err := a.device.RegMR(context.Background(), a.arena.Memory(0, 8), driver.AllAccess)
		require.NoError(t, err)
		require.NotZero(t, mr.RKey())
		require.False(t, seen[mr.RKey()])
		seen[mr.RKey()] = true
		require.NoError(t, mr.Close())
		require.NoError(t, mr.Close(), "closing again")
	}
}

func TestDescriptorNumberUsedAgainDoesNotReachTheOldMemory(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	for i := range byte(5) {
		m, err := memory.NewMemfd("reused", int64(page))
		require.NoError(t, err)
		at := b.register(m.Memory(0, 64), driver.AllAccess)
		a.do(write(at, []byte{i + 1}))
		require.Equal(t, i+1, m.Bytes()[0])
		require.NoError(t, m.Close())
	}
}

func TestMapGivesThePeersMemoryItself(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	ctx := context.Background()
	mapper := a.qp.(driver.Mapper)
	mem, err := mapper.Map(ctx, b.at(16), 100, driver.RemoteWrite|driver.RemoteRead)
	require.NoError(t, err)
	require.Len(t, mem, 100)
	require.Equal(t, 100, cap(mem))
	mem[0] = 42
	require.Equal(t, byte(42), b.arena.Bytes()[16])
	_, err = mapper.Map(ctx, b.at(16), 1<<20, driver.RemoteRead)
	require.ErrorIs(t, err, driver.ErrAccess)
	_, err = mapper.Map(ctx, b.register(b.arena.Memory(0, 64), driver.RemoteRead), 64, driver.RemoteWrite)
	require.ErrorIs(t, err, driver.ErrAccess)
	require.NoError(t, b.mr.Close())
	_, err = mapper.Map(ctx, b.at(16), 100, driver.RemoteRead)
	require.ErrorIs(t, err, driver.ErrAccess)
	mem[0]++ // mapped memory stays mapped
	require.NoError(t, a.device.Close())
	mem[0]++
}

func TestMapNeedsAConnection(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{})
	_, err := a.qp.(driver.Mapper).Map(context.Background(), b.at(0), 8, driver.RemoteRead)
	require.ErrorIs(t, err, driver.ErrState)
	require.Nil(t, a.qp.(driver.Mapper).PeerBell())
}
