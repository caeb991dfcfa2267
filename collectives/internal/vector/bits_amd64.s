#include "textflag.h"
#include "loop_amd64.h"

// And, Or and Xor do not depend on the size of elements.

#define AND(l, r, d) VPAND r, l, d
#define OR(l, r, d) VPOR r, l, d
#define XOR(l, r, d) VPXOR r, l, d

TEXT ·avxAnd(SB), NOSPLIT, $0-72
	KERNEL(AND)

TEXT ·avxOr(SB), NOSPLIT, $0-72
	KERNEL(OR)

TEXT ·avxXor(SB), NOSPLIT, $0-72
	KERNEL(XOR)
