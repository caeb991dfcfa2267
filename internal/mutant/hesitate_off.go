//go:build !mutant_hesitate

package mutant

// Hesitates reports whether ranks pause at random.
const Hesitates = false

// Hesitate does nothing, and the compiler removes it.
func Hesitate(Rate) {}
