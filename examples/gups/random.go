package main

// HPCC's sequence: the powers of x modulo a primitive polynomial over GF(2), of
// period 2^63-1. start computes number n of the sequence without those before it.
const polynomial = 7

// next multiplies by x.
func next(ran uint64) uint64 {
	carry := uint64(int64(ran) >> 63)
	return ran<<1 ^ carry&polynomial
}

// start returns x^n by squaring. For each bit of n from the top it squares, and
// multiplies by x if the bit is set.
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

// multiply multiplies two polynomials by Horner's method.
func multiply(a, b uint64) (product uint64) {
	for bit := 63; bit >= 0; bit-- {
		product = next(product)
		if b>>bit&1 == 1 {
			product ^= a
		}
	}
	return product
}
