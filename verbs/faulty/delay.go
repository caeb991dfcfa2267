package faulty

import (
	"math/rand/v2"
	"time"
)

// Streams of random numbers are apart, so that decisions of one kind do not
// depend on how often another was asked for.
const (
	streamRequest = iota // drawn for each request as it is posted
	streamRefuse         // drawn by each PostSend
	streamReceive        // drawn for each completed receive
	streamShuffle
	streams
)

func (p *Plan) dice(context, qp, stream int) *rand.Rand {
	return rand.New(rand.NewPCG(p.Seed, uint64(context)<<40|uint64(qp)<<8|uint64(stream)))
}

// roll says whether something of that chance happens. It draws a number
// whatever the chance, so that plans which differ in one chance agree on the
// others.
func roll(dice *rand.Rand, chance float64) bool { return dice.Float64() < chance }

// A delay is how long something will be held; 0 is not at all.
type delay struct {
	time  time.Duration
	polls uint64
}

func (p *Plan) delay(dice *rand.Rand, chance float64) delay {
	held := roll(dice, chance)
	d := delay{time.Duration(dice.Int64N(int64(p.MaxDelay) + 1)), dice.Uint64N(uint64(p.MaxPolls) + 1)}
	if !held {
		return delay{}
	}
	return d
}

// A hold is over at a time, or after a number of polls in all.
type hold struct {
	until time.Time
	polls uint64
}

func (d *device) hold(l delay) hold { return hold{d.now.Add(l.time), d.polls + l.polls} }

// over says whether h is over; if not, the pump will come back when it is.
func (d *device) over(h hold) bool {
	if d.polls >= h.polls || !d.now.Before(h.until) {
		return true
	}
	d.wakeAt(h.until)
	return false
}
