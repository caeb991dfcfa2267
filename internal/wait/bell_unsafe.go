package wait

import "unsafe"

// wordsAt returns the first Size bytes of mem, 8-aligned, as a bell's words.
func wordsAt(mem []byte) *words {
	_ = mem[Size-1]
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%8 != 0 {
		panic("wait: bell not aligned to 8 bytes")
	}
	return (*words)(p)
}
