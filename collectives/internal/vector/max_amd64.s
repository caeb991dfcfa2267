#include "textflag.h"
#include "loop_amd64.h"

// Max. AVX2 has no instruction for elements of 64 bits: compare and choose.

#define MAX_INT8(l, r, d) VPMAXSB r, l, d
#define MAX_UINT8(l, r, d) VPMAXUB r, l, d
#define MAX_INT16(l, r, d) VPMAXSW r, l, d
#define MAX_UINT16(l, r, d) VPMAXUW r, l, d
#define MAX_INT32(l, r, d) VPMAXSD r, l, d
#define MAX_UINT32(l, r, d) VPMAXUD r, l, d

#define MAX_INT64(l, r, d) \
	VPCMPGTQ l, r, Y11; \
	VBLENDVPD Y11, r, l, d

// Unsigned ones compare as signed ones whose highest bit is flipped.
#define HIGHEST_BITS \
	VPCMPEQD Y15, Y15, Y15; \
	VPSLLQ $63, Y15, Y15
#define MAX_UINT64(l, r, d) \
	VPXOR Y15, l, Y12; \
	VPXOR Y15, r, Y13; \
	VPCMPGTQ Y12, Y13, Y11; \
	VBLENDVPD Y11, r, l, d

// The instruction returns its second operand if one is a NaN or both are zeros.
// The and of both orders clears the sign that one zero lacks. It may also clear a
// NaN, which the mask of the unordered (comparison 3) makes again.
#define MAX_PS(l, r, d) \
	VMAXPS r, l, Y11; \
	VMAXPS l, r, Y12; \
	VCMPPS $3, r, l, Y13; \
	VANDPS Y12, Y11, Y11; \
	VORPS Y13, Y11, d
#define MAX_PD(l, r, d) \
	VMAXPD r, l, Y11; \
	VMAXPD l, r, Y12; \
	VCMPPD $3, r, l, Y13; \
	VANDPD Y12, Y11, Y11; \
	VORPD Y13, Y11, d

TEXT ·avxMaxInt8(SB), NOSPLIT, $0-72
	KERNEL(MAX_INT8)

TEXT ·avxMaxInt16(SB), NOSPLIT, $0-72
	KERNEL(MAX_INT16)

TEXT ·avxMaxInt32(SB), NOSPLIT, $0-72
	KERNEL(MAX_INT32)

TEXT ·avxMaxInt64(SB), NOSPLIT, $0-72
	KERNEL(MAX_INT64)

TEXT ·avxMaxUint8(SB), NOSPLIT, $0-72
	KERNEL(MAX_UINT8)

TEXT ·avxMaxUint16(SB), NOSPLIT, $0-72
	KERNEL(MAX_UINT16)

TEXT ·avxMaxUint32(SB), NOSPLIT, $0-72
	KERNEL(MAX_UINT32)

TEXT ·avxMaxUint64(SB), NOSPLIT, $0-72
	HIGHEST_BITS
	KERNEL(MAX_UINT64)

TEXT ·avxMaxFloat32(SB), NOSPLIT, $0-72
	KERNEL(MAX_PS)

TEXT ·avxMaxFloat64(SB), NOSPLIT, $0-72
	KERNEL(MAX_PD)
