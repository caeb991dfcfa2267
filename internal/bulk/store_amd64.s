//go:build !race

#include "textflag.h"

// func storeLines(dst, src *byte, n int)
TEXT ·storeLines(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), AX
	MOVQ AX, CX
	SHRQ $3, CX
	REP; MOVSQ
	ANDQ $7, AX
	JEQ  done
	MOVQ AX, CX
	REP; MOVSB

done:
	RET
