package collectives

import "time"

// company bounds the time between the ends of two calls that follow one another. Beyond, the
// program seems to compute between them.
const company = 50 * time.Microsecond

// A pace decides when the last message of a call leaves. If the program seems to compute
// between its calls, the message leaves at once. If calls follow one another, the message
// waits and leaves with those of the next call. That saves a system call for each call. A
// group begins and ends its pace around each call by messages.
//
// Where ranks share cores, only the program's own time between two calls counts, and not
// the time within a call. A sender there wakes other ranks, which take the core for a while.
// So even a call that waits for no member may last longer than company. With messages that
// leave at once, all later calls would last as long. (8 ranks on 2 cores over tcp, a stream
// of broadcasts of 4 KiB: 20 us each, or 100 us in about every third job.) To tell the two
// times apart, the call after a slow one reads the clock at its beginning, too.
//
// A message that waits leaves with the next one, when this rank polls, or when the device
// lets it wait no longer (tcp: CombineDelay, 300 us).
type pace struct {
	clock   func() time.Duration
	crowded bool
	ended   time.Duration // when the call before ended
	slow    bool          // the call before ended long after the one before that
	between time.Duration // from the end of the call before to the beginning of this one, if slow
}

// newPace returns the pace of a team.
func newPace(crowded bool) pace {
	start := time.Now()
	return pace{clock: func() time.Duration { return time.Since(start) }, crowded: crowded}
}

// begin measures the program's time since the call before, if end will need it.
func (p *pace) begin() {
	if p.slow && p.crowded {
		p.between = p.clock() - p.ended
	}
}

// end calls leave if the last message of the call shall leave at once. waited is true if the
// call waited for another member. Other ranks may take the core during leave, so end reads
// the clock again.
func (p *pace) end(waited bool, leave func()) {
	before, timed := p.ended, p.slow && p.crowded
	p.ended = p.clock()
	p.slow = p.ended-before > company
	if p.slow && (waited || !timed || p.between > company) {
		leave()
		p.ended = p.clock()
	}
}
