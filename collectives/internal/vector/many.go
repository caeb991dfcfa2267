package vector

// block is how much Many reduces at once: two of it fit a first-level cache.
const block = 8 << 10

// Many sets every out to in[0] ∘ in[1] ∘ ..., in that order: the same bits that
// f gives from left to right. Each input is read from memory once and each
// output written once, because a block of what is under way stays in the cache.
//
// There is at least one of each, all are as long, and the elements are of elem
// bytes. out[0] may be in[0] or in[1] itself but no later input; the other
// outputs may be any of the inputs. A buffer of the caller's own as out[0] lifts
// the rule.
func Many(f Combine, elem int, out, in [][]byte) {
	step := max(block/elem, 1) * elem
	for at, n := 0, len(out[0]); at < n; at += step {
		end := min(at+step, n)
		acc := out[0][at:end]
		reduce(f, acc, in, at, end)
		for _, o := range out[1:] {
			copy(o[at:end], acc)
		}
	}
}

// reduce combines the inputs from at to end into acc.
func reduce(f Combine, acc []byte, in [][]byte, at, end int) {
	if len(in) == 1 {
		copy(acc, in[0][at:end])
		return
	}
	f(acc, in[0][at:end], in[1][at:end])
	for _, next := range in[2:] {
		f(acc, acc, next[at:end])
	}
}
