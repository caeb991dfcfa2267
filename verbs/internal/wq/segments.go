package wq

import "github.com/gopgas/gopgas/verbs/driver"

// Length returns the number of bytes in segments.
func Length(segments []driver.Segment) int {
	n := 0
	for i := range segments {
		n += len(segments[i].Mem)
	}
	return n
}

// Gather fills dst from segments, starting skip bytes into them.
func Gather(dst []byte, segments []driver.Segment, skip int) {
	for i := range segments {
		mem := segments[i].Mem
		if skip >= len(mem) {
			skip -= len(mem)
			continue
		}
		n := copy(dst, mem[skip:])
		if dst, skip = dst[n:], 0; len(dst) == 0 {
			return
		}
	}
}

// Scatter fills segments from src, starting skip bytes into them. Precondition:
// they are long enough.
func Scatter(segments []driver.Segment, skip int, src []byte) {
	for i := range segments {
		mem := segments[i].Mem
		if skip >= len(mem) {
			skip -= len(mem)
			continue
		}
		n := copy(mem[skip:], src)
		if src, skip = src[n:], 0; len(src) == 0 {
			return
		}
	}
}

// Atomic returns operation and width of an atomic request. OpFetchAdd and
// OpCmpSwap are atomics of 8 bytes.
func Atomic(wr *driver.WorkRequest) (op driver.AtomicOp, width int) {
	switch wr.Op {
	case driver.OpFetchAdd:
		return driver.AtomicAdd, 8
	case driver.OpCmpSwap:
		return driver.AtomicCmpSwap, 8
	}
	return wr.Atomic, int(wr.Width)
}
