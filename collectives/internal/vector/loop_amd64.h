// KERNEL is a whole kernel: dst = left ∘ right over slices of bytes, 128 bytes a
// turn, then 32, then the pieces of 16, 8, 4, 2 and 1 bytes of which the rest is
// made. OP(l, r, d) is ∘ on vectors; it may use Y8 to Y15, some of which the
// kernel may have set. In a piece the upper elements of the vectors are zero and
// their results are dropped. A piece never splits an element, because the
// lengths are multiples of an element and elements are powers of two.
//
//	DI dst   SI left   DX right   CX bytes to go, less what the next turn needs
//
// From 8 MiB on, KERNEL writes a dst that is neither operand past the caches, which
// would not keep it: that saves reading it first, a quarter of the memory traffic.
// Such stores are not ordered; the fence puts them before the store that announces
// dst to other cores. They need whole vectors, so dst at 16 bytes, which splits no
// element.
#define STREAMED (8<<20 - 128)
#define KERNEL(OP) \
	MOVQ dst_base+0(FP), DI; \
	MOVQ dst_len+8(FP), CX; \
	MOVQ left_base+24(FP), SI; \
	MOVQ right_base+48(FP), DX; \
	CMPQ CX, left_len+32(FP); \
	JNE  unequal; \
	CMPQ CX, right_len+56(FP); \
	JNE  unequal; \
	SUBQ $128, CX; \
	JLT  few; \
	CMPQ CX, $STREAMED; \
	JGE  long; \
	PCALIGN $32; \
turn: \
	COMBINE_4(OP); \
	VMOVDQU Y0, (DI); \
	VMOVDQU Y1, 32(DI); \
	VMOVDQU Y2, 64(DI); \
	VMOVDQU Y3, 96(DI); \
	ADVANCE(128); \
	SUBQ $128, CX; \
	JGE  turn; \
few: \
	ADDQ $96, CX; \
	JLT  sixteen; \
one: \
	VMOVDQU (SI), Y0; \
	VMOVDQU (DX), Y4; \
	OP(Y0, Y4, Y0); \
	VMOVDQU Y0, (DI); \
	ADVANCE(32); \
	SUBQ $32, CX; \
	JGE  one; \
sixteen: \
	TESTQ $16, CX; \
	JEQ  eight; \
	COMBINE_16(OP); \
eight: \
	TESTQ $8, CX; \
	JEQ  four; \
	VMOVQ (SI), X0; \
	VMOVQ (DX), X4; \
	OP(Y0, Y4, Y0); \
	VMOVQ X0, (DI); \
	ADVANCE(8); \
four: \
	TESTQ $4, CX; \
	JEQ  two; \
	VMOVD (SI), X0; \
	VMOVD (DX), X4; \
	OP(Y0, Y4, Y0); \
	VMOVD X0, (DI); \
	ADVANCE(4); \
two: \
	TESTQ $2, CX; \
	JEQ  last; \
	MOVWLZX (SI), AX; \
	MOVWLZX (DX), BX; \
	VMOVD AX, X0; \
	VMOVD BX, X4; \
	OP(Y0, Y4, Y0); \
	VMOVD X0, AX; \
	MOVW AX, (DI); \
	ADVANCE(2); \
last: \
	TESTQ $1, CX; \
	JEQ  done; \
	MOVBLZX (SI), AX; \
	MOVBLZX (DX), BX; \
	VMOVD AX, X0; \
	VMOVD BX, X4; \
	OP(Y0, Y4, Y0); \
	VMOVD X0, AX; \
	MOVB AX, (DI); \
done: \
	VZEROUPPER; \
	RET; \
long: \
	CMPQ DI, SI; \
	JEQ  turn; \
	CMPQ DI, DX; \
	JEQ  turn; \
	TESTQ $15, DI; \
	JNE  turn; \
	TESTQ $16, DI; \
	JEQ  stream; \
	COMBINE_16(OP); \
	SUBQ $16, CX; \
	PCALIGN $32; \
stream: \
	COMBINE_4(OP); \
	VMOVNTDQ Y0, (DI); \
	VMOVNTDQ Y1, 32(DI); \
	VMOVNTDQ Y2, 64(DI); \
	VMOVNTDQ Y3, 96(DI); \
	ADVANCE(128); \
	SUBQ $128, CX; \
	JGE  stream; \
	SFENCE; \
	JMP  few; \
unequal: \
	JMP ·unequal(SB)

#define COMBINE_4(OP) \
	VMOVDQU (SI), Y0; \
	VMOVDQU 32(SI), Y1; \
	VMOVDQU 64(SI), Y2; \
	VMOVDQU 96(SI), Y3; \
	VMOVDQU (DX), Y4; \
	VMOVDQU 32(DX), Y5; \
	VMOVDQU 64(DX), Y6; \
	VMOVDQU 96(DX), Y7; \
	OP(Y0, Y4, Y0); \
	OP(Y1, Y5, Y1); \
	OP(Y2, Y6, Y2); \
	OP(Y3, Y7, Y3)

#define COMBINE_16(OP) \
	VMOVDQU (SI), X0; \
	VMOVDQU (DX), X4; \
	OP(Y0, Y4, Y0); \
	VMOVDQU X0, (DI); \
	ADVANCE(16)

#define ADVANCE(n) \
	ADDQ $n, SI; \
	ADDQ $n, DX; \
	ADDQ $n, DI
