#include "textflag.h"

// func cmpxchg16b(p *pair, old0, old1, next0, next1 uint64) (seen0, seen1 uint64)
TEXT ·cmpxchg16b(SB), NOSPLIT, $0-56
	MOVQ p+0(FP), DI
	MOVQ old0+8(FP), AX
	MOVQ old1+16(FP), DX
	MOVQ next0+24(FP), BX
	MOVQ next1+32(FP), CX
	LOCK
	CMPXCHG16B (DI)
	MOVQ AX, seen0+40(FP)
	MOVQ DX, seen1+48(FP)
	RET
