package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func FuzzDecodeNearCard(f *testing.F) {
	card := nearCard{head: driver.RemoteAddr{Addr: 1, RKey: driver.Key{Hi: 2, Lo: 3}}, length: 4, place: 9, address: []byte("device")}
	f.Add([]byte(nil))
	f.Add(card.encode())
	card.place = 8
	f.Add(card.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := decodeNearCard(b); ok {
			require.GreaterOrEqual(t, c.length, 0)
			require.NotEmpty(t, c.address)
			require.True(t, c.place == 0 || (c.place-1)%8 == 0, "place %d is no word's", c.place)
			require.Equal(t, b, c.encode(), "one card, one encoding")
		}
	})
}
