package blocks

import "encoding/binary"

// A Run is Count blocks of Block bytes, Stride bytes apart.
type Run struct{ At, Block, Count, Stride int }

// A Cursor walks the bytes of a layout in order.
type Cursor struct {
	l       *Layout
	base    int // byte of the layout's place 0
	unit    int // bytes of a unit
	done    bool
	index   [MaxDims]int // of regular layouts: steps of each dim
	next    int          // of listed layouts: the block to read
	current Run          // not taken yet
	rest    Run          // behind current
}

// Start returns a cursor of l, whose units have unit bytes and whose place 0 is at byte base.
func Start(l *Layout, base, unit int) Cursor { return Cursor{l: l, base: base, unit: unit} }

// More makes c.current a run that is not empty. It returns false at the end.
func (c *Cursor) More() bool {
	if c.current.Count > 0 {
		return true
	}
	if c.rest.Count > 0 {
		c.current, c.rest = c.rest, Run{}
		return true
	}
	if c.done {
		return false
	}
	if c.l.kind == listed {
		c.fetchListed()
	} else {
		c.fetchRegular()
	}
	return c.current.Count > 0
}

// fetchRegular reads the run of the fastest dim and steps the others.
func (c *Cursor) fetchRegular() {
	l := c.l
	at := l.first
	for i := 1; i < int(l.depth); i++ {
		at += c.index[i] * l.dims[i].stride
	}
	r := Run{At: at, Block: l.block, Count: 1}
	if l.depth > 0 {
		r.Count, r.Stride = l.dims[0].n, l.dims[0].stride
	}
	c.done = true
	for i := 1; i < int(l.depth); i++ {
		if c.index[i]++; c.index[i] < l.dims[i].n {
			c.done = false
			break
		}
		c.index[i] = 0
	}
	if l.block > 0 {
		c.scale(r)
	}
}

// scale makes r, in units, the current run.
func (c *Cursor) scale(r Run) {
	c.current = Run{At: c.base + r.At*c.unit, Block: r.Block * c.unit, Count: r.Count, Stride: r.Stride * c.unit}
}

// fetchListed reads as many blocks as make one run.
func (c *Cursor) fetchListed() {
	at, n := c.merged()
	if n == 0 {
		c.done = true
		return
	}
	r := Run{At: at, Block: n, Count: 1}
	for {
		before := c.next
		at, n := c.merged()
		last := r.At + (r.Count-1)*r.Stride
		if n != r.Block || r.Count > 1 && at-last != r.Stride {
			c.next = before
			break
		}
		if r.Count == 1 {
			r.Stride = at - r.At
		}
		r.Count++
	}
	c.scale(r)
}

// merged reads the next listed blocks that lie together. It returns no units at the end.
func (c *Cursor) merged() (at, n int) {
	l := c.l
	for ; c.next < len(l.offsets); c.next++ {
		length := l.length(c.next)
		switch {
		case length == 0:
		case n == 0:
			at, n = l.offsets[c.next], length
		case l.offsets[c.next] == at+n:
			n += length
		default:
			return at, n
		}
	}
	return at, n
}

// Take returns the next run, of at most n bytes, and moves behind it. Precondition: More,
// and n > 0.
func (c *Cursor) Take(n int) Run {
	r := c.current
	if r.Block > n { // the front of a block
		if r.Count > 1 {
			c.rest = Run{At: r.At + r.Stride, Block: r.Block, Count: r.Count - 1, Stride: r.Stride}
		}
		c.current = Run{At: r.At + n, Block: r.Block - n, Count: 1}
		return Run{At: r.At, Block: n, Count: 1}
	}
	count := r.Count
	if n/r.Block < count {
		count = n / r.Block
	}
	c.current.At += count * r.Stride
	c.current.Count -= count
	r.Count = count
	return r
}

// fit returns the number of blocks of n bytes that c has in a row, and their distance. No block is
// shorter than n bytes.
func (c *Cursor) fit(n int) (count, stride int) {
	if c.current.Block == n {
		return c.current.Count, c.current.Stride
	}
	return c.current.Block / n, n
}

// Next returns the length of the blocks of the next Pair, 0 at the end.
func Next(a, b *Cursor) int {
	if !a.More() || !b.More() {
		return 0
	}
	return min(a.current.Block, b.current.Block)
}

// Pair takes runs of the same shape off both cursors. It is not ok if one has ended.
func Pair(a, b *Cursor) (ra, rb Run, ok bool) { return PairWithin(a, b, maxSpan) }

// PairWithin is Pair of at most most bytes. Precondition: most > 0.
func PairWithin(a, b *Cursor, most int) (ra, rb Run, ok bool) {
	n := min(Next(a, b), most)
	if n == 0 {
		return Run{}, Run{}, false
	}
	an, as := a.fit(n)
	bn, bs := b.fit(n)
	count := min(an, bn, most/n)
	ra, rb = Run{a.current.At, n, count, as}, Run{b.current.At, n, count, bs}
	a.Take(count * n)
	b.Take(count * n)
	return ra, rb, true
}

// Move copies from src to dst until one of the cursors has ended.
func Move(dst []byte, d *Cursor, src []byte, s *Cursor) {
	for {
		to, from, ok := Pair(d, s)
		if !ok {
			return
		}
		Copy(dst, to, src, from)
	}
}

// Copy copies the blocks of from to those of to, which are as many and as long. It copies words by
// stores, which are whole.
func Copy(dst []byte, to Run, src []byte, from Run) {
	at, by := to.At, from.At
	switch to.Block {
	case 8:
		for range to.Count {
			binary.NativeEndian.PutUint64(dst[at:at+8:at+8], binary.NativeEndian.Uint64(src[by:by+8:by+8]))
			at, by = at+to.Stride, by+from.Stride
		}
	case 4:
		for range to.Count {
			binary.NativeEndian.PutUint32(dst[at:at+4:at+4], binary.NativeEndian.Uint32(src[by:by+4:by+4]))
			at, by = at+to.Stride, by+from.Stride
		}
	default:
		for range to.Count {
			copy(dst[at:at+to.Block], src[by:by+to.Block])
			at, by = at+to.Stride, by+from.Stride
		}
	}
}
