// Package bulk copies long data between cores.
//
// From 1 MiB on, Go's runtime copies around the caches on many processors, by stores
// that fetch no lines. Such stores suit data that is longer than the caches. For
// shorter data the caches are better: the member soon reads or sends its result, and
// writes its input again. Two members with a core each exchange blocks of 1 MiB in 52
// us through the caches, and in 105 us around them.
package bulk

const (
	// Long is the number of bytes from which Store and Copy pay for memory that the
	// caller's own caches may hold.
	Long = 16 << 10
	// cachedMost is the number of bytes that all members together may write if the
	// caches shall keep them.
	cachedMost = 8 << 20
	// piece is the number of bytes that Copy copies at a time through the caches.
	piece = 512 << 10
	// loadFrom is the number of bytes from which Copy stores whole lines. The first cache no
	// longer holds source and destination then. (Get of 32 KiB: 0.21 us instead of 0.36.)
	loadFrom = 32 << 10
	line     = 64 // bytes
)

// Cached reports whether the caches keep the data if each of n members writes so
// many bytes.
func Cached(n, bytes int) bool { return n*bytes <= cachedMost }

// Copy copies src to dst, which is as long: through the caches if cached is true,
// else as Go does. The two may overlap.
func Copy(dst, src []byte, cached bool) {
	switch {
	case !cached:
	case loadsLines && len(dst) >= loadFrom && apart(dst, src):
		storeWhole(dst, src)
		return
	case len(dst) > piece && !within(dst, src):
		for len(dst) > piece {
			copy(dst[:piece], src)
			dst, src = dst[piece:], src[piece:]
		}
	}
	copy(dst, src)
}
