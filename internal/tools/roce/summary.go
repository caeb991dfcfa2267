//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

// congested is the value of a packet's ECN bits by which a switch marks congestion.
const congested = 3

// A direction has packets of one kind, from one port to one queue pair.
type direction struct {
	from, to string
	qpn      uint32
	kind     string
}

// A count is of packets: all, those with a wrong ICRC, and those that a switch marked.
type count struct{ packets, wrong, marked int }

// A summary counts packets.
type summary struct {
	counts    map[direction]*count
	packets   int
	wrong     int
	malformed int
	other     int    // frames that are not RoCE v2
	dropped   uint32 // frames that the kernel dropped ahead of this program
}

// add counts a packet by its direction, queue pair and kind.
func (s *summary) add(f *wire.Frame) {
	d := direction{f.Src.String(), f.Dst.String(), f.Packet.QPN, kindOf(&f.Packet)}
	c := s.counts[d]
	if c == nil {
		c = &count{}
		s.counts[d] = c
	}
	s.packets++
	c.packets++
	if !f.Intact() {
		s.wrong++
		c.wrong++
	}
	if f.TrafficClass&3 == congested {
		c.marked++
	}
}

// kindOf names the operation, or the response.
func kindOf(p *wire.Packet) string {
	if p.Op == wire.Acknowledge {
		return p.Syndrome.String()
	}
	return p.Op.String()
}

// print prints the counts as a table, which is sorted.
func (s *summary) print(out io.Writer) error {
	fmt.Fprintf(out, "\n%d packets, %d with a wrong ICRC, %d malformed; %d other frames\n", s.packets, s.wrong, s.malformed, s.other)
	if s.dropped > 0 {
		fmt.Fprintf(out, "the kernel dropped %d frames: with -q this program is faster\n", s.dropped)
	}
	if s.packets == 0 {
		return nil
	}
	order := slices.SortedFunc(maps.Keys(s.counts), func(a, b direction) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.qpn, b.qpn), cmp.Compare(a.kind, b.kind))
	})
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "from\tto\tqueue pair\toperation or response\tpackets\twrong ICRC\tECN marks")
	for _, d := range order {
		c := s.counts[d]
		fmt.Fprintf(table, "%s\t%s\t%#06x\t%s\t%d\t%d\t%d\n", d.from, d.to, d.qpn, d.kind, c.packets, c.wrong, c.marked)
	}
	return table.Flush()
}

// line describes one packet.
func line(f *wire.Frame) string {
	p := &f.Packet
	text := fmt.Sprintf("%v > %v qp %#06x psn %8d %s", f.Src, f.Dst, p.QPN, p.PSN, kindOf(p))
	switch {
	case p.Op == wire.CompareSwap || p.Op == wire.FetchAdd:
		text += fmt.Sprintf(" addr %#x key %#x operand %d compare %d", p.Addr, p.RKey, p.Swap, p.Compare)
	case p.RKey != 0:
		text += fmt.Sprintf(" addr %#x key %#x length %d", p.Addr, p.RKey, p.Length)
	case p.Op == wire.AtomicAcknowledge:
		text += fmt.Sprintf(" old %d", p.Old)
	}
	if p.Op.HasAETH() {
		text += fmt.Sprintf(" msn %d", p.MSN)
	}
	if len(p.Payload) > 0 {
		text += fmt.Sprintf(", %d bytes", len(p.Payload))
	}
	if p.AckRequest {
		text += ", asks for an ACK"
	}
	if f.TrafficClass&3 == congested {
		text += ", marked by ECN"
	}
	if !f.Intact() {
		text += fmt.Sprintf(", WRONG ICRC %#08x, want %#08x", f.GotICRC, f.WantICRC)
	}
	return text
}
