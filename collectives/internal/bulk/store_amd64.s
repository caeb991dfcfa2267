#include "textflag.h"

// func storeLines(dst, src *byte, n int)
TEXT ·storeLines(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	CLD
	REP; MOVSB
	RET
