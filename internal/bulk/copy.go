// Package bulk copies what is long, between cores.
//
// Go's runtime copies 1 MiB and more around the caches on some processors, by stores
// that need not fetch lines for that. That is right for what is longer than the caches.
// Shorter results are about to be read or sent, and inputs to be written again: two
// members with a core each exchange blocks of 1 MiB in 52 us through the caches, and in
// 105 around them.
package bulk

const (
	// cachedMost is how much all members together may write for it to stay in caches.
	cachedMost = 8 << 20
	// piece is what is copied at a time to go through them.
	piece = 512 << 10
)

// Cached tells whether what n members write, some bytes each, stays in caches.
func Cached(n, bytes int) bool { return n*bytes <= cachedMost }

// Copy copies src to dst, which is as long, through the caches or as it comes. They
// may be the same, and do not overlap else.
func Copy(dst, src []byte, cached bool) {
	for cached && len(dst) > piece {
		copy(dst[:piece], src)
		dst, src = dst[piece:], src[piece:]
	}
	copy(dst, src)
}
