package wait

import "time"

// firstPause is the shortest [Pause].
const firstPause = time.Millisecond

// A Pause is the time between two attempts of a goroutine that nothing wakes. The first one is a
// millisecond. The zero Pause is ahead of the first attempt.
type Pause time.Duration

// Next returns the pause ahead of the next attempt: twice the last one, but at most longest.
func (p *Pause) Next(longest time.Duration) time.Duration {
	*p = Pause(min(max(2*time.Duration(*p), firstPause), longest))
	return time.Duration(*p)
}
