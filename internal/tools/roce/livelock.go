//go:build linux

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

const livelockHelp = `Shows the livelock of RDMA over a network that loses packets, in simulated time.

A sender sends one message in packets. The network loses each packet and each response with
the same probability. The receiver names a missing packet in a NAK. Then

	go-back-0    the sender begins the message again
	go-back-N    the sender goes on from the missing packet; the receiver drops those behind it
	selective    the sender repeats that packet alone; the receiver keeps those behind it

With go-back-0 the message only arrives if the network loses none of its packets in a row. At 1 lost
packet in 256 that is one try in 9 million for 4096 packets: all links are busy, and nothing
is ever delivered. Guo and others found this in NICs: "RDMA over Commodity Ethernet at Scale",
SIGCOMM 2016, section 4.1. Today's NICs, and the kernel's software device, go back to N.

	roce livelock                     # the setting of that section: 4 MiB in packets of 1 KiB
	roce livelock -packets 64         # a short message gets through
	roce livelock -loss 0             # a lossless network hides the difference

`

// livelock prints one line for each recovery.
func livelock(args []string, out, help io.Writer) error {
	f := flags("livelock", livelockHelp, help)
	size := f.Int("packets", 4096, "`packets` of the message")
	in := f.Int("loss", 256, "the network loses 1 in `this many` packets and responses; 0: none")
	window := f.Int("window", 1024, "`packets` that the sender sends ahead of their acknowledgment")
	delay := f.Int("delay", 16, "the `time` of a packet on its way, in times that it takes to send one")
	limit := f.Int("limit", 1_000_000, "give up after sending `this many` packets")
	seed := f.Uint64("seed", 1, "a `number` that chooses the lost packets")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *size < 1 || *in < 0 || *window < 1 || *delay < 1 || *limit < 1 || f.NArg() > 0 {
		return fmt.Errorf("livelock: numbers from 1 on, or -loss 0, and no other arguments (see -h)")
	}
	n := network{window: *window, delay: *delay, seed: *seed}
	if *in > 0 {
		n.loss = 1 / float64(*in)
	}
	lost := "none lost"
	if *in > 0 {
		lost = fmt.Sprintf("1 in %d lost", *in)
	}
	fmt.Fprintf(out, "1 message of %d packets, %s, window %d, delay %d, seed %d\n\n", *size, lost, *window, *delay, *seed)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "recovery\tmessage\tpackets sent\tlost\tNAKs\ttimeouts\tfarthest\tgoodput\t")
	for _, r := range []recovery{goBack0, goBackN, selective} {
		t := n.deliver(r, *size, *limit)
		end, goodput := "unfinished", 0.0
		if t.finished {
			end, goodput = "finished", 100*float64(*size)/float64(t.sent)
		}
		fmt.Fprintf(table, "%v\t%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t\n", r, end, t.sent, t.lost, t.naks, t.timeouts, t.farthest, goodput)
	}
	return table.Flush()
}
