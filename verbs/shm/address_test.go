//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func sampleAddress() *address {
	return &address{pid: 1234, fd: 7, inode: 99, token: [2]uint64{1, 2}, mrs: 16384, index: 3, block: 40960, ring: 65536,
		receives: 16, nonce: 0xabcdef, bellInode: 98, bellFD: 6, bellOffset: 64}
}

func TestAddressSurvivesEncoding(t *testing.T) {
	b := sampleAddress().encode()
	require.Len(t, b, addressSize)
	got, err := decodeAddress(b)
	require.NoError(t, err)
	require.Equal(t, sampleAddress(), got)
}

func TestAddressesOutOfRangeAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*address){
		"no process":             func(a *address) { a.pid = 0 },
		"negative process":       func(a *address) { a.pid = 1 << 31 },
		"negative descriptor":    func(a *address) { a.fd = 1 << 31 },
		"no MR table":            func(a *address) { a.mrs = 0 },
		"huge MR table":          func(a *address) { a.mrs = maxMRs + 1 },
		"doorbell out of range":  func(a *address) { a.index = maxQPs },
		"block at odd place":     func(a *address) { a.block = 4097 },
		"ring of odd size":       func(a *address) { a.ring = 65537 },
		"tiny ring":              func(a *address) { a.ring = 64 },
		"no receives":            func(a *address) { a.receives = 0 },
		"odd number of receives": func(a *address) { a.receives = 15 },
		"too many receives":      func(a *address) { a.receives = 2 * maxDepth },
		"bell at odd place":      func(a *address) { a.bellOffset = 4 },
	} {
		a := sampleAddress()
		spoil(a)
		_, err := decodeAddress(a.encode())
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
}

func FuzzDecodeAddress(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(sampleAddress().encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := decodeAddress(b)
		if err != nil {
			require.ErrorIs(t, err, driver.ErrInvalid)
			return
		}
		require.Empty(t, a.outOfRange())
		require.Equal(t, b, a.encode(), "one address, one encoding")
	})
}

// FuzzRecord reads the header of a record that a hostile peer has written.
func FuzzRecord(f *testing.F) {
	f.Add(uint64(0), uint64(0), uint64(1), uint64(3))
	f.Add(uint64(64)<<32|1, uint64(0), uint64(2), uint64(63))
	f.Add(^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0))
	f.Fuzz(func(t *testing.T, word, extra, available, position uint64) {
		mem := make([]byte, ringStart+4096)
		r := ringAt(mem, 0, 4096)
		wordAt(mem, r.place(position)).Store(word)
		wordAt(mem, r.place(position)+8).Store(extra)
		available %= r.capacity() + 1
		rec, err := r.get(position, available)
		if err != nil {
			return
		}
		require.LessOrEqual(t, linesOf(rec.bytes), available)
		require.Len(t, r.data(position, rec.bytes), int(rec.bytes))
	})
}
