//go:build !race

#include "textflag.h"

// func storeLines(dst, src *byte, n int)
TEXT ·storeLines(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ DI, AX
	SUBQ SI, AX
	CMPQ AX, CX
	JCS  backward // dst begins within src
	REP; MOVSB
	RET

backward:
	LEAQ -1(DI)(CX*1), DI
	LEAQ -1(SI)(CX*1), SI
	STD
	REP; MOVSB
	CLD
	RET
