package bulk

// Short is the number of bytes from which Store writes whole lines. Below it Store is copy:
// starting the string move costs more.
const Short = 1 << 10

// Store is copy for a dst whose old content other cores have in their caches. Such memory
// is written again and again by this core for other cores to read. An ordinary copy
// fetches each line before it overwrites it, and waits for the other cores' answer.
// Stores of whole lines only have the other cores drop theirs. (Two ranks with a core
// each that share no cache, broadcast of 1 MiB by pieces of 64 KiB: 37 us instead of 140.
// A put of 64 KiB with a notification, where they share one: 2.5 us instead of 3.7.)
//
// Where the processor has no quick string moves, Store copies through the caches. Data
// longer than the caches it copies as Go does.
func Store(dst, src []byte) int {
	n := min(len(dst), len(src))
	switch cached := Cached(1, n); {
	case n == 0 || &dst[0] == &src[0]: // a string move onto itself is slow
	case n < Short:
		copy(dst, src)
	case cached && wholeLines && apart(dst[:n], src[:n]):
		storeWhole(dst[:n], src[:n])
	default:
		Copy(dst[:n], src[:n], cached)
	}
	return n
}

// apart reports whether dst and src, which are as long, share no byte.
func apart(dst, src []byte) bool { return !within(dst, src) && !within(src, dst) }

// storeWhole stores src to dst, which is as long and longer than a line. A string move is
// slow unless its destination begins with a line.
func storeWhole(dst, src []byte) {
	head := toLine(dst)
	copy(dst[:head], src)
	storeLines(&dst[head], &src[head], len(dst)-head)
}
