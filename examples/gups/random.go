package main

// HPCC's sequence: the powers of x modulo a primitive polynomial over GF(2),
// of period 2^63-1. Number n of the sequence can be had without those before.
const polynomial = 7

// next multiplies by x.
func next(ran uint64) uint64 {
	carry := uint64(int64(ran) >> 63)
	return ran<<1 ^ carry&polynomial
}

// start returns x^n by squaring: bit by bit from the top, square what there is
// and multiply by x where the bit is set.
func start(n uint64) uint64 {
	power := uint64(1)
	for bit := 63; bit >= 0; bit-- {
		power = multiply(power, power)
		if n>>bit&1 == 1 {
			power = next(power)
		}
	}
	return power
}

// multiply multiplies two polynomials, Horner's way.
func multiply(a, b uint64) (product uint64) {
	for bit := 63; bit >= 0; bit-- {
		product = next(product)
		if b>>bit&1 == 1 {
			product ^= a
		}
	}
	return product
}
