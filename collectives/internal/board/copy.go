package board

// Go's runtime copies 1 MiB and more around the caches, by stores that the processor
// need not fetch lines for. That is right for what is longer than the caches. Shorter
// results are about to be read, and inputs to be written again: two members with a core
// each exchange blocks of 1 MiB in 52 us through the caches, and in 105 around them.
const (
	// cachedMost is how much all members together may write for it to stay in caches.
	cachedMost = 8 << 20
	// copyPiece is what is copied at a time to go through them.
	copyPiece = 512 << 10
)

// cached tells whether what n members write, some bytes each, stays in caches.
func cached(n, bytes int) bool { return n*bytes <= cachedMost }

// copyLong copies src to dst, which is as long, through the caches or as it comes.
func copyLong(dst, src []byte, cached bool) {
	for cached && len(dst) > copyPiece {
		copy(dst[:copyPiece], src)
		dst, src = dst[copyPiece:], src[copyPiece:]
	}
	copy(dst, src)
}

// copyTo copies src to dst unless they are the same.
func (b *Board) copyTo(dst, src []byte) {
	if len(src) > 0 && !same(dst, src) {
		copyLong(dst[:len(src)], src, b.cached)
	}
}
