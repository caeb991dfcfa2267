package collectives

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhatIsSentLastLeavesAtOnceIfTheProgramComputes(t *testing.T) {
	const calls = 10
	for name, c := range map[string]struct {
		between, within, leaving time.Duration
		waits                    bool
		leaves                   int
	}{
		"one after the other":               {leaves: 1}, // the first, long after the beginning
		"the program computes":              {between: time.Millisecond, leaves: calls},
		"calls last long without waiting":   {within: time.Millisecond, leaves: 1},
		"calls wait":                        {within: time.Millisecond, waits: true, leaves: calls},
		"others take the core when it has":  {leaving: time.Millisecond, leaves: 1},
		"they do, and the program computes": {between: time.Millisecond, leaving: time.Millisecond, leaves: calls},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Second
			p := pace{clock: func() time.Duration { return now }}
			left := 0
			for range calls {
				now += c.between
				p.begin()
				now += c.within
				p.end(c.waits, func() bool {
					left++
					now += c.leaving
					return false
				})
			}
			require.Equal(t, c.leaves, left)
		})
	}
}
