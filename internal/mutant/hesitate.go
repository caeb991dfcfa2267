//go:build mutant_hesitate

package mutant

import (
	"math/rand/v2"
	"time"
)

// Hesitates reports whether ranks pause at random.
const Hesitates = true

// Hesitate pauses one time in eight: mostly for some milliseconds, at times for up to 120.
func Hesitate() {
	switch rand.IntN(32) {
	case 0:
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
	case 1, 2, 3:
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
	}
}
