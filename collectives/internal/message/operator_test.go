package message_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// An operator is an operator of the tests' reductions.
type operator struct {
	name     string
	elem     int
	combine  message.Combine
	commutes bool
	ordered  bool // results are compared with the left-to-right order, bit by bit
	fill     func(r *rand.Rand, vector []byte)
}

// operators: two that commute and give the same in any order, two that do not
// commute, and one that does but rounds.
func operators() []operator {
	return []operator{
		{name: "sum of int64", elem: 8, combine: words(func(x, y uint64) uint64 { return x + y }), commutes: true, fill: anything},
		{name: "xor of bytes", elem: 1, combine: xor, commutes: true, fill: anything},
		{name: "affine maps", elem: 16, combine: affine, fill: anything},
		{name: "matrices of bytes", elem: 4, combine: matrices, fill: anything},
		{name: "sum of float64 in order", elem: 8, combine: words(addFloats), commutes: true, ordered: true, fill: floats},
	}
}

func words(f func(x, y uint64) uint64) message.Combine {
	return func(dst, left, right []byte) {
		for i := 0; i < len(dst); i += 8 {
			binary.LittleEndian.PutUint64(dst[i:], f(binary.LittleEndian.Uint64(left[i:]), binary.LittleEndian.Uint64(right[i:])))
		}
	}
}

func addFloats(x, y uint64) uint64 {
	return math.Float64bits(math.Float64frombits(x) + math.Float64frombits(y))
}

func xor(dst, left, right []byte) {
	for i := range dst {
		dst[i] = left[i] ^ right[i]
	}
}

// affine composes x -> ax+b modulo 2^64: the left map first.
func affine(dst, left, right []byte) {
	for i := 0; i < len(dst); i += 16 {
		a, b := binary.LittleEndian.Uint64(left[i:]), binary.LittleEndian.Uint64(left[i+8:])
		c, d := binary.LittleEndian.Uint64(right[i:]), binary.LittleEndian.Uint64(right[i+8:])
		binary.LittleEndian.PutUint64(dst[i:], a*c)
		binary.LittleEndian.PutUint64(dst[i+8:], b*c+d)
	}
}

// matrices multiplies 2x2 matrices modulo 256.
func matrices(dst, left, right []byte) {
	for i := 0; i < len(dst); i += 4 {
		l, r := [4]byte(left[i:]), [4]byte(right[i:])
		dst[i], dst[i+1] = l[0]*r[0]+l[1]*r[2], l[0]*r[1]+l[1]*r[3]
		dst[i+2], dst[i+3] = l[2]*r[0]+l[3]*r[2], l[2]*r[1]+l[3]*r[3]
	}
}

func anything(r *rand.Rand, vector []byte) {
	for i := range vector {
		vector[i] = byte(r.Uint32())
	}
	for i := 0; i+8 <= len(vector); i += 8 {
		vector[i] |= 1 // odd factors lose no bits of the other operand
	}
}

// floats has numbers of such different sizes that every order of addition gives
// another sum.
func floats(r *rand.Rand, vector []byte) {
	for i := 0; i < len(vector); i += 8 {
		binary.LittleEndian.PutUint64(vector[i:], math.Float64bits(math.Ldexp(r.Float64()-0.5, r.IntN(60))))
	}
}

// fold returns vectors[0]∘vectors[1]∘..., from left to right.
func (o *operator) fold(vectors [][]byte) []byte {
	sum := append([]byte(nil), vectors[0]...)
	for _, v := range vectors[1:] {
		o.combine(sum, sum, v)
	}
	return sum
}
