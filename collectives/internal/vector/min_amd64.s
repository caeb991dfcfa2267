#include "textflag.h"
#include "loop_amd64.h"

// Min. AVX2 has no instruction for elements of 64 bits: compare and choose.

#define MIN_INT8(l, r, d) VPMINSB r, l, d
#define MIN_UINT8(l, r, d) VPMINUB r, l, d
#define MIN_INT16(l, r, d) VPMINSW r, l, d
#define MIN_UINT16(l, r, d) VPMINUW r, l, d
#define MIN_INT32(l, r, d) VPMINSD r, l, d
#define MIN_UINT32(l, r, d) VPMINUD r, l, d

#define MIN_INT64(l, r, d) \
	VPCMPGTQ r, l, Y11; \
	VBLENDVPD Y11, r, l, d

// Unsigned ones compare as signed ones whose highest bit is flipped.
#define HIGHEST_BITS \
	VPCMPEQD Y15, Y15, Y15; \
	VPSLLQ $63, Y15, Y15
#define MIN_UINT64(l, r, d) \
	VPXOR Y15, l, Y12; \
	VPXOR Y15, r, Y13; \
	VPCMPGTQ Y13, Y12, Y11; \
	VBLENDVPD Y11, r, l, d

// The instruction returns its second operand if one is a NaN or both are zeros. So
// at least one of both orders has the NaN, or the sign, and the or keeps it.
#define MIN_PS(l, r, d) \
	VMINPS r, l, Y11; \
	VMINPS l, r, Y12; \
	VORPS Y12, Y11, d
#define MIN_PD(l, r, d) \
	VMINPD r, l, Y11; \
	VMINPD l, r, Y12; \
	VORPD Y12, Y11, d

TEXT ·avxMinInt8(SB), NOSPLIT, $0-72
	KERNEL(MIN_INT8)

TEXT ·avxMinInt16(SB), NOSPLIT, $0-72
	KERNEL(MIN_INT16)

TEXT ·avxMinInt32(SB), NOSPLIT, $0-72
	KERNEL(MIN_INT32)

TEXT ·avxMinInt64(SB), NOSPLIT, $0-72
	KERNEL(MIN_INT64)

TEXT ·avxMinUint8(SB), NOSPLIT, $0-72
	KERNEL(MIN_UINT8)

TEXT ·avxMinUint16(SB), NOSPLIT, $0-72
	KERNEL(MIN_UINT16)

TEXT ·avxMinUint32(SB), NOSPLIT, $0-72
	KERNEL(MIN_UINT32)

TEXT ·avxMinUint64(SB), NOSPLIT, $0-72
	HIGHEST_BITS
	KERNEL(MIN_UINT64)

TEXT ·avxMinFloat32(SB), NOSPLIT, $0-72
	KERNEL(MIN_PS)

TEXT ·avxMinFloat64(SB), NOSPLIT, $0-72
	KERNEL(MIN_PD)
