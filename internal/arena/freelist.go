package arena

import "slices"

// A span is a range of free bytes.
type span struct{ off, n int64 }

// A freeList holds the free spans of an arena, sorted; no two touch.
type freeList []span

// take cuts n bytes from the first span that holds them.
func (f *freeList) take(n int64) (off int64, ok bool) {
	for i := range *f {
		s := &(*f)[i]
		if s.n < n {
			continue
		}
		off = s.off
		s.off, s.n = s.off+n, s.n-n
		if s.n == 0 {
			*f = slices.Delete(*f, i, i+1)
		}
		return off, true
	}
	return 0, false
}

// give returns a span and merges it with its neighbors.
func (f *freeList) give(off, n int64) {
	i, _ := slices.BinarySearchFunc(*f, off, func(s span, off int64) int { return int(min(max(s.off-off, -1), 1)) })
	*f = slices.Insert(*f, i, span{off, n})
	f.merge(i)
	if i > 0 {
		f.merge(i - 1)
	}
}

// merge joins span i with the next one where they touch.
func (f *freeList) merge(i int) {
	s := *f
	if i+1 < len(s) && s[i].off+s[i].n == s[i+1].off {
		s[i].n += s[i+1].n
		*f = slices.Delete(s, i+1, i+2)
	}
}
