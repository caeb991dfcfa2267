#include "textflag.h"

// func prefetchWrite(l *line)
// PREFETCHW, which the assembler has no name for; a CPU without it does nothing.
TEXT ·prefetchWrite(SB), NOSPLIT, $0-8
	MOVQ l+0(FP), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08
	RET
