package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func FuzzCutPlaceReadsWhatAppendWrote(f *testing.F) {
	f.Add((&Place{Provider: "tcp", Addr: driver.RemoteAddr{Addr: 1, RKey: driver.Key{Hi: 2, Lo: 3}}, Length: 4}).Append(nil))
	f.Add((*Place)(nil).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, rest, ok := CutPlace(b)
		if !ok {
			return
		}
		require.Equal(t, b, append(p.Append(nil), rest...))
	})
}
