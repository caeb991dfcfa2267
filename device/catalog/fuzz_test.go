package catalog

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// Another rank's bytes are a lease in an offer, or an error.
func FuzzDecodeTakesLeasesInOffersOnly(f *testing.F) {
	c := &Catalog{offers: []Published{{Rank: 1, Size: 1 << 16}, {Rank: 1, Number: 1, Size: 4096}}}
	f.Add(Lease{Rank: 1, Number: 1, Len: 4096, age: 1}.Append(nil))
	f.Add(Lease{Rank: 1, Offset: 4096, Len: 8192, entry: 63, age: 1 << 60}.Append(nil))
	f.Add(Lease{Rank: 1, Offset: -1, Len: 1 << 62, age: 1}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := c.Decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrLease)
			return
		}
		size := []int{1 << 16, 4096}[l.Number]
		require.True(t, l.Rank == 1 && l.Offset >= 0 && l.Len > 0 && l.Offset+l.Len <= size && l.entry >= 0 && l.entry < entries)
		require.Equal(t, b, l.Append(nil))
	})
}

// Books that hold anything lead to no range outside the offer, and to none that an entry has.
func FuzzBooksLeadToFreeRangesOnly(f *testing.F) {
	f.Add([]byte{0, 1, 5, 2}, uint16(3))
	f.Add([]byte{255, 255, 0, 16}, uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, want uint16) {
		const size = 1 << 16
		book := make([]uint64, bookWords)
		for i := 0; i+1 < len(b) && i/2 < entries; i += 2 {
			e := book[i/2*entryWords:]
			e[entryOffset], e[entryLen] = uint64(int8(b[i]))*granule, uint64(b[i+1])*granule // some lie ahead of the offer, or end behind it
		}
		n := (int(want)%16 + 1) * granule
		entry, at, used, err := fit(book, size, n)
		if err != nil {
			require.ErrorIs(t, err, ErrBooks)
			return
		}
		require.GreaterOrEqual(t, used, 0)
		if entry >= 0 {
			require.Zero(t, book[entry*entryWords+entryLen])
		}
		if at < 0 {
			return
		}
		require.LessOrEqual(t, at+n, size)
		for i := range entries {
			off, length := int(book[i*entryWords]), int(book[i*entryWords+entryLen])
			require.False(t, length > 0 && at < off+length && off < at+n, "entry %d has a part of the range", i)
		}
	})
}

// A configuration space that holds anything ends the walk.
func FuzzConfigurationSpaceEndsTheWalk(f *testing.F) {
	f.Add(binary.LittleEndian.AppendUint32(nil, 0x1000000d))
	f.Add(binary.LittleEndian.AppendUint32(nil, 0x10020001))
	f.Fuzz(func(_ *testing.T, b []byte) { redirecting(append(make([]byte, extended), b...)) })
}
