package vector

import (
	"math"
	"reflect"
)

// A Loc is a value and its place, which MinLoc and MaxLoc reduce. It is 16 bytes
// for every T.
type Loc[T ordered] struct {
	Value T
	Index int64
}

// ForLoc returns MinLoc (op is Min) or MaxLoc (Max) over elements Loc[T], or
// nil for other operations and types.
//
// Locs have a total order, so both operations commute and associate. They return
// the value that op picks, and the lowest index among those that have it. A NaN
// comes before all other values, as in Min and Max. Of -0 and +0, -0 comes first
// for Min and +0 for Max.
func ForLoc[T any](op Op) Combine {
	return fastest(&locatedAssembly, &locatedPlain, reflect.TypeFor[T]().Kind(), op)
}

// minLoc combines pairs of a value and an index: the lesser value, and of equal values the lesser
// index.
func minLoc[T integer](dst, left, right []byte) {
	d, l, r := operands[Loc[T]](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		p, q := &l[i], &r[i]
		if q.Value < p.Value || q.Value == p.Value && q.Index < p.Index {
			p = q
		}
		d[i] = *p
	}
}

// maxLoc is minLoc for the greater value.
func maxLoc[T integer](dst, left, right []byte) {
	d, l, r := operands[Loc[T]](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		p, q := &l[i], &r[i]
		if q.Value > p.Value || q.Value == p.Value && q.Index < p.Index {
			p = q
		}
		d[i] = *p
	}
}

// minLocFloat is minLoc for floats; settle decides where values are NaN or zeros of different signs.
func minLocFloat[T float](dst, left, right []byte) {
	d, l, r := operands[Loc[T]](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		p, q := &l[i], &r[i]
		if q.Value < p.Value || !(q.Value > p.Value) && settle(q, p, math.Signbit(float64(q.Value))) {
			p = q
		}
		d[i] = *p
	}
}

// maxLocFloat is maxLoc for floats.
func maxLocFloat[T float](dst, left, right []byte) {
	d, l, r := operands[Loc[T]](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		p, q := &l[i], &r[i]
		if q.Value > p.Value || !(q.Value < p.Value) && settle(q, p, !math.Signbit(float64(q.Value))) {
			p = q
		}
		d[i] = *p
	}
}

// settle reports whether a comes first, of two that are neither less nor greater.
// If they are zeros of unlike signs, preferred reports whether a's sign is the
// better.
func settle[T float](a, b *Loc[T], preferred bool) bool {
	if m, n := a.Value != a.Value, b.Value != b.Value; m || n {
		return m && (!n || a.Index < b.Index)
	}
	if math.Signbit(float64(a.Value)) != math.Signbit(float64(b.Value)) {
		return preferred
	}
	return a.Index < b.Index
}
