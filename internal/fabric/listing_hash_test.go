package fabric

import (
	"encoding/binary"
	"hash/fnv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHashOfARegionIsFNV(t *testing.T) {
	for _, provider := range []string{"", "shm", "ibv"} {
		for _, name := range []string{"", "x", "team/world.12.1", "a long name\xff\x00 of a region"} {
			h := fnv.New128a()
			_, _ = h.Write([]byte(provider + "\x00" + name)) // never fails
			sum := h.Sum(nil)
			require.Equal(t, [2]uint64{binary.BigEndian.Uint64(sum) | 1, binary.BigEndian.Uint64(sum[8:])}, hashOf(provider, name))
			require.Zero(t, testing.AllocsPerRun(100, func() { _ = hashOf(provider, name) }))
		}
	}
}
