package verbs

import "sync/atomic"

// keys finds the regions of a PD by local key. Readers take no lock. Calls of add and drop
// exclude each other. The number of buckets doubles as regions enter, so that n of them
// take time proportional to n.
type keys struct {
	buckets atomic.Pointer[[]bucket] // a power of two of them, nil: no region yet
	live    int
	moved   int // entries that growing has made anew, for tests
}

// A bucket is a list of entries.
type bucket = atomic.Pointer[entry]

// An entry stays linked to its followers when drop takes it out: a reader that stands on
// it goes on.
type entry struct {
	mr   *MR
	next atomic.Pointer[entry]
}

// fewest is the number of buckets of a table with its first region.
const fewest = 16

// find returns the region of k, or nil.
func (t *keys) find(k Key) *MR {
	b := t.buckets.Load()
	if b == nil {
		return nil
	}
	for e := home(*b, k).Load(); e != nil; e = e.next.Load() {
		if e.mr.lkey == k {
			return e.mr
		}
	}
	return nil
}

// add enters a region. Its key is new.
func (t *keys) add(mr *MR) {
	b := t.buckets.Load()
	if b == nil || t.live == len(*b) {
		b = t.grow(b)
	}
	link(*b, mr)
	t.live++
}

// grow publishes a table with twice the buckets.
func (t *keys) grow(old *[]bucket) *[]bucket {
	next := make([]bucket, fewest)
	if old != nil {
		next = make([]bucket, 2*len(*old))
		for i := range *old {
			for e := (*old)[i].Load(); e != nil; e = e.next.Load() {
				link(next, e.mr)
				t.moved++
			}
		}
	}
	t.buckets.Store(&next)
	return &next
}

// drop takes a region out, if it is in.
func (t *keys) drop(mr *MR) {
	b := t.buckets.Load()
	if b == nil {
		return
	}
	for at := home(*b, mr.lkey); ; {
		e := at.Load()
		if e == nil {
			return
		}
		if e.mr == mr {
			at.Store(e.next.Load())
			t.live--
			return
		}
		at = &e.next
	}
}

// link puts mr ahead of its bucket's entries.
func link(b []bucket, mr *MR) {
	at, e := home(b, mr.lkey), &entry{mr: mr}
	e.next.Store(at.Load())
	at.Store(e)
}

// home returns the bucket of k. Devices number their keys with equal low bits, so the
// product's high bits choose.
func home(b []bucket, k Key) *bucket {
	const golden = 0x9e3779b97f4a7c15
	return &b[(k.Lo^k.Hi)*golden>>32&uint64(len(b)-1)]
}
