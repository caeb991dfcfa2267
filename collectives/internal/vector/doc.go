// Package vector combines the elements of byte slices: the arithmetic of
// reductions, at the speed of the machine's vectors.
//
//	left   a0 a1 a2 a3 a4 a5 a6 a7 ...      two operands, n elements of one type
//	right  b0 b1 b2 b3 b4 b5 b6 b7 ...
//	       └──── one vector ────┘
//	dst    a0∘b0 a1∘b1 ...                  dst may be left or right itself
//
// [For] looks up the [Combine] of an operation and a type, [ForLoc] that of
// MinLoc and MaxLoc; both allocate nothing and keep nothing. [Func] and
// [Slices] make one of what a program brings. All of it is local.
//
// # Two forms, one result
//
// Each operation has a plain Go form, which is its definition, and most have a
// second one in AVX2 assembly, which is looked up where the processor has it.
// Both give the same bits, whatever the length and the alignment, so ranks on
// unlike machines agree. The bits of a NaN are the exception: where one form
// gives a NaN so does the other, but which of the many is not said.
//
// The assembly is one loop, in loop_amd64.h, around one macro for each
// operation. Under the race detector, which does not see what assembly reads
// and writes, the plain form is used. Like copy, a kernel is not preempted.
//
// # Floating point
//
// Sum and Prod round once for each operation and never fuse two; a complex
// product is what Go's operator gives where it does not fuse. Sums and products
// of floating-point numbers do not associate: the order of reduction shows.
//
// Min and Max are Go's: NaN if one operand is NaN, and -0 is less than +0. With
// that they commute and associate.
package vector
