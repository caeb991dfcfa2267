#include "textflag.h"
#include "loop_amd64.h"

// Sum: one instruction for each size of an element; integers wrap around.

#define ADD_8(l, r, d) VPADDB r, l, d
#define ADD_16(l, r, d) VPADDW r, l, d
#define ADD_32(l, r, d) VPADDD r, l, d
#define ADD_64(l, r, d) VPADDQ r, l, d
#define ADD_PS(l, r, d) VADDPS r, l, d
#define ADD_PD(l, r, d) VADDPD r, l, d

TEXT ·avxSum8(SB), NOSPLIT, $0-72
	KERNEL(ADD_8)

TEXT ·avxSum16(SB), NOSPLIT, $0-72
	KERNEL(ADD_16)

TEXT ·avxSum32(SB), NOSPLIT, $0-72
	KERNEL(ADD_32)

TEXT ·avxSum64(SB), NOSPLIT, $0-72
	KERNEL(ADD_64)

TEXT ·avxSumFloat32(SB), NOSPLIT, $0-72
	KERNEL(ADD_PS)

TEXT ·avxSumFloat64(SB), NOSPLIT, $0-72
	KERNEL(ADD_PD)
