package loggp

import (
	"errors"
	"fmt"
	"math"
)

// A Link holds the constants of the model between two ranks. All times are in nanoseconds.
type Link struct {
	Latency        float64 `json:"latency"`        // L
	Send           float64 `json:"send"`           // o, at the sender
	SendPerByte    float64 `json:"sendPerByte"`    // O, at the sender
	Receive        float64 `json:"receive"`        // o, at the receiver
	ReceivePerByte float64 `json:"receivePerByte"` // O, at the receiver
	Gap            float64 `json:"gap"`            // g
	PerByte        float64 `json:"perByte"`        // G
	// Rendezvous is S: a sender of so many bytes or more waits until the receiver waits for
	// the message. 0: a sender never waits.
	Rendezvous int `json:"rendezvous,omitempty"`
}

// A Machine holds the ranks and hosts of a simulated job.
type Machine struct {
	Ranks   int
	PerHost int  // ranks of each host but perhaps the last; consecutive
	Within  Link // between ranks of one host
	Among   Link // between ranks of two hosts
	// CombinePerByte is the time to combine a byte of two vectors, in nanoseconds.
	CombinePerByte float64
	// PerCall is the time of a call at each rank beside its messages, in nanoseconds.
	PerCall float64
	// Part chooses the algorithms of a two-level call: the one among hosts, if among is true, and
	// the one within each host. nil: algorithms for short data.
	Part func(collective string, bytes int, among bool) (algorithm string)
}

// ErrMachine is the error of a machine or call that cannot be simulated; match with errors.Is.
var ErrMachine = errors.New("cannot be simulated")

// MostRanks bounds the ranks of a simulated job. MostBytes bounds a call's longest buffer, and
// the memory that one rank takes beside its buffers.
const (
	MostRanks = 1 << 20
	MostBytes = 1 << 30
)

// errMemory ends an algorithm that asks for too much memory: it expects no error.
var errMemory = fmt.Errorf("more than %d bytes of memory at one rank: %w", MostBytes, ErrMachine)

// check returns ErrMachine if a constant is out of its range. Run calls it.
func (m *Machine) check() error {
	switch {
	case m.Ranks < 1 || m.Ranks > MostRanks:
		return fmt.Errorf("%d ranks: %w; want 1 to %d", m.Ranks, ErrMachine, MostRanks)
	case m.PerHost < 1:
		return fmt.Errorf("%d ranks on each host: %w; want 1 or more", m.PerHost, ErrMachine)
	}
	for _, l := range []*Link{&m.Within, &m.Among} {
		for _, t := range []float64{l.Latency, l.Send, l.SendPerByte, l.Receive, l.ReceivePerByte, l.Gap, l.PerByte, m.CombinePerByte, m.PerCall} {
			if !(t >= 0) || math.IsInf(t, 1) {
				return fmt.Errorf("a constant of %v ns: %w; want times from 0", t, ErrMachine)
			}
		}
	}
	return nil
}

// host returns the host of a rank.
func (m *Machine) host(rank int) int { return rank / m.PerHost }

// hosts returns the number of hosts.
func (m *Machine) hosts() int { return (m.Ranks + m.PerHost - 1) / m.PerHost }
