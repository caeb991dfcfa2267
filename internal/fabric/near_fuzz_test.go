package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func FuzzDecodeNearCard(f *testing.F) {
	card := nearCard{head: driver.RemoteAddr{Addr: 1, RKey: driver.Key{Hi: 2, Lo: 3}}, length: 4, place: 5, address: []byte("device")}
	f.Add([]byte(nil))
	f.Add(card.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := decodeNearCard(b); ok {
			require.GreaterOrEqual(t, c.length, 0)
			require.NotEmpty(t, c.address)
			require.Equal(t, b, c.encode(), "one card, one encoding")
		}
	})
}
