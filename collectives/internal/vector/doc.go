// Package vector combines the elements of byte slices: the arithmetic of
// reductions, at the speed of the machine's vectors.
//
//	left   a0 a1 a2 a3 a4 a5 a6 a7 ...      two operands, n elements of one type
//	right  b0 b1 b2 b3 b4 b5 b6 b7 ...
//	       └──── one vector ────┘
//	dst    a0∘b0 a1∘b1 ...                  dst may be left or right itself
//
// [For] looks up the [Combine] of an operation and a type, [ForLoc] that of
// MinLoc and MaxLoc; both allocate nothing and keep nothing. [Func] and [Slices]
// make a Combine of a function of the program. All calls are local.
//
// # Two forms, one result
//
// Each operation has a plain Go form, which is its definition. Most have a second
// form in AVX2 assembly, which For returns if the processor has AVX2. Both forms
// give the same bits at every length and alignment, so ranks on unlike machines
// agree. The bits of a NaN are the exception: both forms give a NaN for the same
// operands, but not always the same NaN.
//
// The assembly is one loop, in loop_amd64.h, around one macro for each operation.
// The race detector does not see the reads and writes of assembly, so race builds
// use the plain form. Like copy, a kernel is not preempted.
//
// # Floating point
//
// Sum and Prod round once for each operation and never fuse two; a complex
// product is that of Go's operator without fusing. Sums and products of
// floating-point numbers do not associate: the result depends on the order of
// reduction.
//
// Min and Max are Go's: NaN if one operand is NaN, and -0 is less than +0. So
// they commute and associate.
package vector
