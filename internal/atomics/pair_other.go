//go:build !amd64

package atomics

const hasPairs = false

// compareSwapPair is not there: Fits refuses words of 16 bytes.
func compareSwapPair(*pair, pair, pair) pair { panic("atomics: no words of 16 bytes") }
