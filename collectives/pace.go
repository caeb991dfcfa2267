package collectives

import "time"

// company is how soon one call follows another for what they send to leave together.
const company = 50 * time.Microsecond

// A pace has what a call sent last leave at once if the program seems to compute between its
// calls. If these follow one another it waits for what the next one sends, which saves a
// system call each.
//
// Where ranks share cores, what counts is the program's own time: who sends wakes others
// that take the core for a while, so a call that does not wait for anybody may last longer
// than company for that alone, and would do so for as long as each sends for itself (8
// ranks on 2 cores over tcp, a stream of broadcasts of 4 KiB: 20 us each, or 100 in about
// every third job). There, calls that come far from one another have the clock looked at
// when they begin, too.
//
// What is kept back leaves with what comes next, when this rank polls, or when the device
// lets it wait no longer (tcp: CombineDelay, 300 us).
type pace struct {
	clock   func() time.Duration
	crowded bool
	ended   time.Duration // the call before
	slow    bool          // it ended long after the one before it
	between time.Duration // that one's end and the beginning of this, if slow
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

// end ends a call, which has waited for others or not, and has what it sent last leave, if
// that is due. Others may take the core then, which is not the program's time.
func (p *pace) end(waited bool, leave func()) {
	before, timed := p.ended, p.slow && p.crowded
	p.ended = p.clock()
	p.slow = p.ended-before > company
	if p.slow && (waited || !timed || p.between > company) {
		leave()
		p.ended = p.clock()
	}
}
