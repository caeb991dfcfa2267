package collectives

import "time"

// company bounds the time between two calls whose messages leave together.
const company = 50 * time.Microsecond

// A pace decides when the last message of a call leaves. If the program seems to compute
// between its calls, the message leaves at once. If calls follow one another, the message
// waits for those of the next call, which saves a system call each.
//
// Where ranks share cores, only the program's own time counts. A sender wakes other ranks,
// which take the core for a while. So a call that waits for no member may last longer than
// company, and keeps doing so as long as each message leaves by itself. (8 ranks on 2 cores
// over tcp, a stream of broadcasts of 4 KiB: 20 us each, or 100 us in about every third
// job.) There, after a slow call, the next one reads the clock at its beginning, too.
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

func newPace(crowded bool) pace {
	start := time.Now()
	return pace{clock: func() time.Duration { return time.Since(start) }, crowded: crowded}
}

// begin begins a call.
func (p *pace) begin() {
	if p.slow && p.crowded {
		p.between = p.clock() - p.ended
	}
}

// end ends a call, which has waited for other members or not. It calls leave if the last
// message is due. Other ranks may take the core meanwhile, so end reads the clock again.
func (p *pace) end(waited bool, leave func()) {
	before, timed := p.ended, p.slow && p.crowded
	p.ended = p.clock()
	p.slow = p.ended-before > company
	if p.slow && (waited || !timed || p.between > company) {
		leave()
		p.ended = p.clock()
	}
}
