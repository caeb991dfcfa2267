package loop

import (
	goruntime "runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

func newTable() *keyTable {
	t := &keyTable{}
	t.init()
	return t
}

func TestOnlyKeysOfOpenRegionsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable()
		open, dead := map[driver.Key]*mr{}, []driver.Key{{}}
		t.Repeat(map[string]func(*rapid.T){
			"open": func(t *rapid.T) {
				m, err := table.add(make([]byte, 16), driver.AllAccess)
				require.NoError(t, err)
				require.NotContains(t, open, m.key)
				require.NotContains(t, dead, m.key)
				open[m.key] = m
			},
			"close": func(t *rapid.T) {
				for key, m := range open {
					require.NoError(t, m.Close())
					delete(open, key)
					dead = append(dead, key)
					return
				}
			},
			"": func(t *rapid.T) {
				for key, want := range open {
					m, mem, err := table.open(driver.RemoteAddr{Addr: want.addr, RKey: key}, 16, driver.AllAccess)
					require.NoError(t, err)
					require.Same(t, want, m)
					require.Len(t, mem, 16)
					m.done()
				}
				for _, key := range dead {
					_, _, err := table.open(driver.RemoteAddr{RKey: key}, 0, 0)
					require.ErrorIs(t, err, driver.ErrAccess)
				}
			},
		})
	})
}

func TestBoundsHoldForAnyAddressAndLength(t *testing.T) {
	table := newTable()
	m, err := table.add(make([]byte, 64), driver.AllAccess)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		addr := rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(m.addr-8, m.addr+72)).Draw(t, "addr")
		n := rapid.OneOf(rapid.IntRange(0, 80), rapid.IntRange(0, int(^uint(0)>>1))).Draw(t, "n")
		mem := m.within(addr, n)
		inside := addr >= m.addr && addr-m.addr <= 64 && uint64(n) <= 64-(addr-m.addr)
		require.Equal(t, inside, mem != nil)
		if inside {
			require.Len(t, mem, n)
			require.Equal(t, n, cap(mem))
		}
	})
}

// TestAccessAfterCloseFailsThoughKeyWasFoundBefore stages the race.
func TestAccessAfterCloseFailsThoughKeyWasFoundBefore(t *testing.T) {
	table := newTable()
	m, err := table.add(make([]byte, 8), driver.AllAccess)
	require.NoError(t, err)
	before := table.slots.Load()
	require.NoError(t, m.Close())
	table.slots.Store(before)
	_, _, err = table.open(driver.RemoteAddr{Addr: m.addr, RKey: m.key}, 8, driver.RemoteRead)
	require.ErrorIs(t, err, driver.ErrAccess)
}

func TestKeysLookRandom(t *testing.T) {
	table, ones := newTable(), 0
	const keys = 200
	for range keys {
		m, err := table.add(make([]byte, 8), 0)
		require.NoError(t, err)
		for bit := range 64 {
			ones += int(m.key.Hi >> bit & 1)
		}
	}
	require.InDelta(t, keys*32, ones, keys*4)
}

func TestCloseWaitsForAccessesUnderWay(t *testing.T) {
	table := newTable()
	m, err := table.add(make([]byte, 8), driver.AllAccess)
	require.NoError(t, err)
	remote := driver.RemoteAddr{Addr: m.addr, RKey: m.key}
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for {
				m, mem, err := table.open(remote, 8, driver.RemoteWrite)
				if err != nil {
					return
				}
				atomics.Word64(mem).Add(1)
				m.done()
			}
		})
	}
	for atomics.Word64(m.mem).Load() < 1000 {
		goruntime.Gosched()
	}
	require.NoError(t, m.Close())
	last := atomics.Word64(m.mem).Load()
	users.Wait()
	require.Equal(t, last, atomics.Word64(m.mem).Load())
	table.closeAll()
	_, err = table.add(make([]byte, 8), 0)
	require.ErrorIs(t, err, driver.ErrClosed)
}
