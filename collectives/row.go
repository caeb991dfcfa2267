package collectives

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/rpipe"
)

// Beside the pipes, a member has a row for each other one that it exchanges messages
// with, memory that the other alone writes:
//
//	0       64      72      128              8 KiB + 128
//	| offer | taken | freed | slot | slot | ... | ring
//
// The offer says where the other takes a long message (rendezvous). Slots and ring hold
// its short messages to this member; taken is how many of this member's it took, and freed
// up to where it has no more use for the ring there (eager).
const (
	rowOffer = 0
	rowTaken = 64
	rowFreed = 72
	rowSlots = 128
	rowRing  = rowSlots + slots*slotSize
)

// rowSize returns the bytes of a row.
func (p *transport) rowSize() int { return rowRing + p.ring }

// rowName names the memory that a member of the team writes to.
func (p *transport) rowName(member int) string {
	return p.group.team.Name + "/row/" + strconv.Itoa(member)
}

// reach finds this member's row at a partner, which makes it when it comes to its first
// message with this one. So no member waits here before its own rows are made.
func (p *transport) reach(ctx context.Context, member int) error {
	with := &p.partners[member]
	if with.there != nil {
		return nil
	}
	there, err := p.group.team.AwaitRegion(ctx, p.group.team.Members[member], p.rowName(p.Rank()))
	if err != nil {
		return err
	}
	if there.Len < p.rowSize() {
		return fmt.Errorf("row of %d bytes at rank %d, not of %d: %w", there.Len, member, p.rowSize(), rpipe.ErrCorrupt)
	}
	with.there = there
	return nil
}
