package vector

import (
	"bytes"
	"testing"
)

// FuzzAssembly runs both forms of any operation on the halves of any bytes.
func FuzzAssembly(f *testing.F) {
	all := kernels(f)
	for i := range all {
		f.Add(uint(i), bytes.Repeat([]byte{0, 0x80, 0xFF, 0x7F, 0, 0, 0xC0, 0x7F, 1}, 60))
	}
	f.Fuzz(func(t *testing.T, which uint, operands []byte) {
		k := all[which%uint(len(all))]
		n := len(operands) / 2 / sizes[k.kind] * sizes[k.kind]
		l, r := operands[:n], operands[len(operands)-n:]
		want, got := make([]byte, n), make([]byte, n)
		plain.get(k.kind, k.op)(want, l, r)
		assembly.get(k.kind, k.op)(got, l, r)
		if !same(k.kind, want, got) {
			t.Errorf("%v of %v: the forms differ\nleft  %x\nright %x\nplain %x\navx2  %x", k.op, k.kind, l, r, want, got)
		}
	})
}
