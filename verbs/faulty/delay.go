package faulty

import (
	"math/rand/v2"
	"time"
)

// Each kind of decision has a stream of random numbers of its own. So it does
// not depend on how many decisions of another kind were drawn.
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

// roll draws whether an event of that chance happens. It draws a number for
// every chance, even 0. So plans that differ in one chance draw the same for
// all other chances.
func roll(dice *rand.Rand, chance float64) bool { return dice.Float64() < chance }

// A delay is the length of a hold; 0 means no hold.
type delay struct {
	time  time.Duration
	polls uint64
}

// delay draws a delay. It takes as many numbers from the dice whether something is held or not.
func (p *Plan) delay(dice *rand.Rand, chance float64) delay {
	held := roll(dice, chance)
	d := delay{time.Duration(dice.Int64N(int64(p.MaxDelay) + 1)), dice.Uint64N(uint64(p.MaxPolls) + 1)}
	if !held {
		return delay{}
	}
	return d
}

// A hold ends at a time, or at a number of polls of the device.
type hold struct {
	until time.Time
	polls uint64
}

func (d *device) hold(l delay) hold { return hold{d.now.Add(l.time), d.polls + l.polls} }

// over reports whether h is over. If it is not, the pump will progress again at
// its end.
func (d *device) over(h hold) bool {
	if d.polls >= h.polls || !d.now.Before(h.until) {
		return true
	}
	d.wakeAt(h.until)
	return false
}
