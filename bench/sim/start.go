package main

import (
	"fmt"
	"io"
	"math/bits"
	"text/tabwriter"
	"time"
)

// The work of a rank's start at the rendezvous, as TestStartOfManyRanksTakesFewRoundsCallsAndBytes
// of internal/bootstrap counts it: a handshake, exchanges of cards, and calls, whose request and
// response the rendezvous passes on.
const (
	startMessages = 4 + 3*2 + 3*4 // that the rendezvous receives or sends, for each rank
	startBytes    = 12 << 10      // of these messages
)

// A start is the cost of the start of so many ranks at the rendezvous.
type start struct {
	Ranks    int
	Rounds   int // that wait for each other
	Messages int
	Bytes    int
	Time     time.Duration
}

// starts returns the start of jobs. The rendezvous has one processor and a connection to each
// rank over the link between hosts.
func (c *constants) starts(ranks []int) []start {
	var all []start
	l := &c.Among
	for _, n := range ranks {
		s := start{Ranks: n, Rounds: 6 + bits.Len(uint(n)), Messages: n * startMessages, Bytes: n * startBytes}
		perMessage, perByte := (l.Send+l.Receive)/2, (l.SendPerByte+l.ReceivePerByte)/2
		s.Time = time.Duration(float64(s.Messages)*perMessage + float64(s.Bytes)*perByte + float64(s.Rounds)*2*l.Latency)
		all = append(all, s)
	}
	return all
}

// printStarts prints the cost of starts of the given numbers of ranks.
func printStarts(out io.Writer, starts []start) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nstart of ranks\trounds\tmessages\tbytes\ttime at the rendezvous\t")
	for _, s := range starts {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%v\t\n", s.Ranks, s.Rounds, s.Messages, s.Bytes, s.Time.Round(time.Microsecond))
	}
	table.Flush() //nolint:errcheck // there is no other place to report it
	fmt.Fprintln(out, "The time leaves out the start of the processes and the work of the rendezvous beside its messages.")
}
