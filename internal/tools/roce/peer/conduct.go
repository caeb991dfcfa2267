//go:build linux

package peer

import "github.com/gopgas/gopgas/internal/tools/roce/wire"

// A Conduct says how an Endpoint departs from the protocol. The zero Conduct keeps it.
type Conduct struct {
	// Silent drops requests: the endpoint neither applies them nor responds.
	Silent bool
	// Refuse, where it is not 0, responds to each request with this syndrome, and applies none.
	Refuse wire.Syndrome
	// Lose drops this many responses to requests that the endpoint applies; a negative
	// number drops all.
	Lose int
	// Repeat sends each response this many times more.
	Repeat int
}

// Always is the number of responses to lose that has no end.
const Always = -1

// send returns the responses that leave.
func (c *Conduct) send(responses []wire.Packet) (out []wire.Packet) {
	for _, a := range responses {
		if c.Lose != 0 {
			c.Lose = max(c.Lose-1, Always)
			continue
		}
		for range 1 + c.Repeat {
			out = append(out, a)
		}
	}
	return out
}
