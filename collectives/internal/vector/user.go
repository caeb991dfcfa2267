package vector

// Func makes a Combine of a function of two elements. T has a size and no
// pointers, and memory is aligned for it.
func Func[T any](f func(left, right T) T) Combine {
	return func(dst, left, right []byte) {
		d, l, r := operands[T](dst, left, right)
		for i := range d {
			d[i] = f(l[i], r[i])
		}
	}
}

// Slices makes a Combine of a function of slices. They have the same length, and
// dst may be left or right itself. T is as in Func.
func Slices[T any](f func(dst, left, right []T)) Combine {
	return func(dst, left, right []byte) { f(operands[T](dst, left, right)) }
}
