#include "textflag.h"
#include "loop_amd64.h"

// Prod. The low halves of products are the same for signed and unsigned.

#define MUL_16(l, r, d) VPMULLW r, l, d
#define MUL_32(l, r, d) VPMULLD r, l, d
#define MUL_PS(l, r, d) VMULPS r, l, d
#define MUL_PD(l, r, d) VMULPD r, l, d

// MUL_8 multiplies the odd bytes as words, shifted down, and the even ones in
// place; the mask keeps the low byte of these.
#define LOW_BYTES \
	VPCMPEQD Y15, Y15, Y15; \
	VPSRLW $8, Y15, Y15
#define MUL_8(l, r, d) \
	VPSRLW $8, l, Y11; \
	VPSRLW $8, r, Y12; \
	VPMULLW Y12, Y11, Y11; \
	VPSLLW $8, Y11, Y11; \
	VPMULLW r, l, Y12; \
	VPAND Y15, Y12, Y12; \
	VPOR Y12, Y11, d

// MUL_64 is lo·lo + (hi·lo + lo·hi)·2^32 of the halves of each element.
#define MUL_64(l, r, d) \
	VPSRLQ $32, l, Y11; \
	VPSRLQ $32, r, Y12; \
	VPMULUDQ r, Y11, Y11; \
	VPMULUDQ l, Y12, Y12; \
	VPADDQ Y12, Y11, Y11; \
	VPSLLQ $32, Y11, Y11; \
	VPMULUDQ r, l, Y12; \
	VPADDQ Y12, Y11, d

// MUL_C128 is (a+bi)(c+di) = (ac-bd) + (bc+ad)i: [a b]·[c c] -+ [b a]·[d d].
#define MUL_C128(l, r, d) \
	VMOVDDUP r, Y11; \
	VPERMILPD $15, r, Y12; \
	VPERMILPD $5, l, Y13; \
	VMULPD Y11, l, Y11; \
	VMULPD Y12, Y13, Y12; \
	VADDSUBPD Y12, Y11, d

// MUL_C64 is MUL_C128 on each half, as Go multiplies in double precision.
#define MUL_C64(l, r, d) \
	MUL_C64_HALF($0, l, r, Y8, X8, Y9, X9); \
	MUL_C64_HALF($1, l, r, Y10, X10, Y9, X9); \
	VINSERTF128 $1, X10, Y8, d
#define MUL_C64_HALF(half, l, r, y, x, t, u) \
	VEXTRACTF128 half, l, x; \
	VEXTRACTF128 half, r, u; \
	VCVTPS2PD x, y; \
	VCVTPS2PD u, t; \
	MUL_C128(y, t, y); \
	VCVTPD2PSY y, x

TEXT ·avxProd8(SB), NOSPLIT, $0-72
	LOW_BYTES
	KERNEL(MUL_8)

TEXT ·avxProd16(SB), NOSPLIT, $0-72
	KERNEL(MUL_16)

TEXT ·avxProd32(SB), NOSPLIT, $0-72
	KERNEL(MUL_32)

TEXT ·avxProd64(SB), NOSPLIT, $0-72
	KERNEL(MUL_64)

TEXT ·avxProdFloat32(SB), NOSPLIT, $0-72
	KERNEL(MUL_PS)

TEXT ·avxProdFloat64(SB), NOSPLIT, $0-72
	KERNEL(MUL_PD)

TEXT ·avxProdComplex64(SB), NOSPLIT, $0-72
	KERNEL(MUL_C64)

TEXT ·avxProdComplex128(SB), NOSPLIT, $0-72
	KERNEL(MUL_C128)
