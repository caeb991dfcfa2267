package tcp

import "unsafe"

// word64 and word32 view the front of mem, which is aligned and long enough.

func word64(mem []byte) *uint64 {
	_ = mem[:8]
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
}

func word32(mem []byte) *uint32 {
	_ = mem[:4]
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(mem)))
}

// wordAround is the aligned word that mem, one byte or two aligned ones, lies
// in, and the position of its lowest bit there. An aligned word never
// straddles a page or an allocation.
func wordAround(mem []byte) (p *uint32, shift uint) {
	b := unsafe.Pointer(unsafe.SliceData(mem))
	off := uintptr(b) & 3
	if littleEndian() {
		shift = uint(off) * 8
	} else {
		shift = uint(4-len(mem)-int(off)) * 8
	}
	return (*uint32)(unsafe.Add(b, -int(off))), shift
}

func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}
