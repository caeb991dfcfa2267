#include "textflag.h"
#include "loop_amd64.h"

// MinLoc and MaxLoc. A Loc is 16 bytes: the value, padding, and the index in the
// upper half. Both operands' values become keys, signed integers of 64 bits of
// which the least is first; the index stays as it is:
//
//	integer     value<<(64-bits) ^ flip      Y15 shift, Y14 flip
//	float       the same of its bits, whose sign and magnitude become a complement
//	            where negative, and the least integer if they are a NaN
//	                                         Y13 all but the sign, Y12 infinity
//
// flip makes unsigned integers signed, and by its complement the greatest value
// the first one.

// HALF(value, x, y) sets the lower half of each 16 bytes of y, and clears the upper.
#define HALF(value, x, y) \
	MOVQ $value, AX; \
	VMOVQ AX, x; \
	VINSERTI128 $1, x, y, y

// CHOOSE takes r if its key, Y9, is less than l's, Y8, or equal with a lesser index:
// all in one comparison, and one shuffle of the halves.
#define CHOOSE(l, r, d) \
	VPCMPEQQ Y9, Y8, Y10; \
	VPCMPGTQ Y9, Y8, Y11; \
	VPSHUFD $0xEE, Y11, Y8; \
	VPAND Y10, Y8, Y8; \
	VPOR Y11, Y8, Y8; \
	VPSHUFD $0x44, Y8, Y8; \
	VBLENDVPD Y8, r, l, d

#define LOC_INT(l, r, d) \
	VPSLLVQ Y15, l, Y8; \
	VPSLLVQ Y15, r, Y9; \
	VPXOR Y14, Y8, Y8; \
	VPXOR Y14, Y9, Y9; \
	CHOOSE(l, r, d)

#define LOC_FLOAT(l, r, d) \
	KEY(l, Y8, Y10, Y11); \
	KEY(r, Y9, Y10, Y11); \
	CHOOSE(l, r, d)
#define KEY(v, key, nan, negative) \
	VPSLLVQ Y15, v, key; \
	VPAND Y13, key, nan; \
	VPCMPGTQ Y12, nan, nan; \
	VPXOR negative, negative, negative; \
	VPCMPGTQ key, negative, negative; \
	VPAND Y13, negative, negative; \
	VPXOR negative, key, key; \
	VPXOR Y14, key, key; \
	VPANDN key, nan, key; \
	VPSLLQ $63, nan, nan; \
	VPOR nan, key, key

#define INTS(shift, flip) \
	HALF(shift, X15, Y15); \
	HALF(flip, X14, Y14); \
	KERNEL(LOC_INT)

#define FLOATS(shift, flip, infinity) \
	HALF(shift, X15, Y15); \
	HALF(flip, X14, Y14); \
	HALF(0x7FFFFFFFFFFFFFFF, X13, Y13); \
	HALF(infinity, X12, Y12); \
	KERNEL(LOC_FLOAT)

TEXT ·avxMinLocInt8(SB), NOSPLIT, $0-72
	INTS(56, 0)

TEXT ·avxMinLocInt16(SB), NOSPLIT, $0-72
	INTS(48, 0)

TEXT ·avxMinLocInt32(SB), NOSPLIT, $0-72
	INTS(32, 0)

TEXT ·avxMinLocInt64(SB), NOSPLIT, $0-72
	INTS(0, 0)

TEXT ·avxMinLocUint8(SB), NOSPLIT, $0-72
	INTS(56, 0x8000000000000000)

TEXT ·avxMinLocUint16(SB), NOSPLIT, $0-72
	INTS(48, 0x8000000000000000)

TEXT ·avxMinLocUint32(SB), NOSPLIT, $0-72
	INTS(32, 0x8000000000000000)

TEXT ·avxMinLocUint64(SB), NOSPLIT, $0-72
	INTS(0, 0x8000000000000000)

TEXT ·avxMinLocFloat32(SB), NOSPLIT, $0-72
	FLOATS(32, 0, 0x7F80000000000000)

TEXT ·avxMinLocFloat64(SB), NOSPLIT, $0-72
	FLOATS(0, 0, 0x7FF0000000000000)

TEXT ·avxMaxLocInt8(SB), NOSPLIT, $0-72
	INTS(56, -1)

TEXT ·avxMaxLocInt16(SB), NOSPLIT, $0-72
	INTS(48, -1)

TEXT ·avxMaxLocInt32(SB), NOSPLIT, $0-72
	INTS(32, -1)

TEXT ·avxMaxLocInt64(SB), NOSPLIT, $0-72
	INTS(0, -1)

TEXT ·avxMaxLocUint8(SB), NOSPLIT, $0-72
	INTS(56, 0x7FFFFFFFFFFFFFFF)

TEXT ·avxMaxLocUint16(SB), NOSPLIT, $0-72
	INTS(48, 0x7FFFFFFFFFFFFFFF)

TEXT ·avxMaxLocUint32(SB), NOSPLIT, $0-72
	INTS(32, 0x7FFFFFFFFFFFFFFF)

TEXT ·avxMaxLocUint64(SB), NOSPLIT, $0-72
	INTS(0, 0x7FFFFFFFFFFFFFFF)

TEXT ·avxMaxLocFloat32(SB), NOSPLIT, $0-72
	FLOATS(32, -1, 0x7F80000000000000)

TEXT ·avxMaxLocFloat64(SB), NOSPLIT, $0-72
	FLOATS(0, -1, 0x7FF0000000000000)
