//go:build mutant_hesitate

package mutant

import (
	"math/rand/v2"
	"time"
)

// Hesitates reports whether ranks pause at random.
const Hesitates = true

// Hesitate pauses one time in each: mostly for up to 8 ms, and one time in 32 for 100 to 300 ms.
func Hesitate(each Rate) {
	if rand.IntN(int(each)) > 0 {
		return
	}
	if rand.IntN(32) > 0 {
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		return
	}
	time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
}
