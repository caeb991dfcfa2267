//go:build linux

package main

import "math/rand/v2"

// A recovery is the part of a transport that sends lost packets again.
type recovery int

const (
	// goBack0 begins the whole message again.
	goBack0 recovery = iota
	// goBackN goes on from the lost packet. The receiver drops packets behind it.
	goBackN
	// selective sends only the lost packet. The receiver keeps packets behind it.
	selective
)

func (r recovery) String() string { return [...]string{"go-back-0", "go-back-N", "selective"}[r] }

// A network loses packets at random. Time passes in slots: a sender sends at most one packet in a
// slot.
type network struct {
	window int     // packets that a sender sends beyond the acknowledged ones
	delay  int     // slots in which a packet or a response arrives
	loss   float64 // of packets and of responses, 0 to 1
	seed   uint64
}

// A packet is one of the message, or a response to one.
type packet struct {
	number int  // of the packet, or of the one that the receiver expects
	nak    bool // the receiver found that one missing
	arrive int  // slot
}

// A result is the end of a transfer. It counts packets, not responses, unless the name says
// otherwise.
type result struct {
	recovery recovery
	finished bool
	sent     int
	lost     int
	naks     int // that the receiver sent
	timeouts int
	farthest int // the largest number that the receiver expected
	slots    int
}

// transfer sends one message over a network in simulated time. It gives up when it has sent limit packets.
type transfer struct {
	network
	result
	size   int // of the message, in packets
	random *rand.Rand

	there, back []packet // under way

	// The sender.
	acked, next int
	again       []int // to be sent once more, ahead of next
	progress    int   // the slot in which a response last moved acked, or the timer fired

	// The receiver.
	expect  int
	kept    map[int]bool // behind a gap
	missing int          // the number that the last NAK named, or -1
}

// deliver simulates one message of size packets.
func (n network) deliver(r recovery, size, limit int) result {
	t := transfer{network: n, result: result{recovery: r}, size: size, kept: map[int]bool{}, missing: -1,
		random: rand.New(rand.NewPCG(n.seed, 0))}
	for ; t.acked < size && t.sent < limit; t.slots++ {
		for ; len(t.there) > 0 && t.there[0].arrive <= t.slots; t.there = t.there[1:] {
			t.receive(t.there[0].number)
		}
		for ; len(t.back) > 0 && t.back[0].arrive <= t.slots; t.back = t.back[1:] {
			t.responded(t.back[0])
		}
		if t.slots-t.progress > t.timeout() {
			t.timeouts++
			t.goBack(t.acked)
		}
		t.send()
	}
	t.finished = t.acked >= size
	return t.result
}

// timeout is the number of slots without progress after which the sender repeats: the time of
// a round trip and of a window.
func (t *transfer) timeout() int { return 2*t.delay + t.window }

// send sends the packet of this slot, if there is one.
func (t *transfer) send() {
	number := t.next
	switch {
	case len(t.again) > 0:
		number, t.again = t.again[0], t.again[1:]
	case t.next < t.size && t.next < t.acked+t.window:
		t.next++
	default:
		return
	}
	t.sent++
	if t.loses() {
		t.lost++
		return
	}
	t.there = append(t.there, packet{number: number, arrive: t.slots + t.delay})
}

// loses reports whether the network loses a packet or a response.
func (t *transfer) loses() bool { return t.random.Float64() < t.loss }

// responded takes a response at the sender.
func (t *transfer) responded(p packet) {
	if p.number > t.acked {
		t.acked, t.progress = p.number, t.slots
		t.next = max(t.next, t.acked)
	}
	if p.nak {
		t.goBack(p.number)
	}
}

// goBack repeats a lost packet, and the packets that the recovery repeats with it.
func (t *transfer) goBack(number int) {
	t.progress = t.slots
	switch t.recovery {
	case goBack0:
		t.acked, t.next = 0, 0
	case goBackN:
		t.next = number
	case selective:
		t.again = append(t.again, number)
	}
}

// receive takes a packet at the receiver, and responds.
func (t *transfer) receive(number int) {
	switch {
	case t.recovery == goBack0 && number == 0: // the message begins again
		t.expect, t.missing = 1, -1
	case number == t.expect:
		t.expect++
	case number > t.expect && t.recovery == selective:
		t.kept[number] = true
	case number > t.expect && t.recovery == goBack0:
		t.expect = 0 // the receiver forgets the message
	}
	for t.kept[t.expect] {
		delete(t.kept, t.expect)
		t.expect++
	}
	t.farthest = max(t.farthest, t.expect)
	nak := (number > t.expect || len(t.kept) > 0) && t.missing != t.expect
	if nak {
		t.missing = t.expect
		t.naks++
	}
	if (nak || number < t.expect) && !t.loses() {
		t.back = append(t.back, packet{number: t.expect, nak: nak, arrive: t.slots + t.delay})
	}
}
