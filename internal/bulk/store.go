package bulk

// storeFrom is how many bytes are stored in whole lines: below that, to begin costs more.
const storeFrom = 1 << 10

// Store is copy for a dst whose old content other cores have in their caches: what is
// written again and again for others to read. An ordinary copy fetches each line before
// it writes it, though it writes all of it, and waits for the others' answer; stores of
// whole lines only have the others drop theirs.
// (Two ranks with a core each that share no cache, broadcast of 1 MiB by pieces of 64 KiB:
// 37 us instead of 140. A put of 64 KiB with a notification, where they share one: 2.5 us
// instead of 3.7.)
func Store(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < storeFrom || !wholeLines {
		return copy(dst, src)
	}
	storeLines(&dst[0], &src[0], n)
	return n
}
