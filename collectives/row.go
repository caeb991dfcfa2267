package collectives

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gopgas/gopgas/rpipe"
)

// A row is memory at a member that one partner alone writes. Beside the pipes, a member
// has a row for each partner:
//
//	0       64      72      128              8 KiB + 128
//	| offer | taken | freed | slot | slot | ... | ring
//
// The offer says where the partner takes a long message (rendezvous). Slots and ring hold
// the partner's short messages to this member (eager). In taken the partner counts this
// member's short messages that it took; freed is the position up to which it freed its ring.
const (
	rowOffer = 0
	rowTaken = 64
	rowFreed = 72
	rowSlots = 128
	rowRing  = rowSlots + slots*slotSize
)

// rowSize returns the bytes of a row.
func (p *transport) rowSize() int { return rowRing + p.ring }

// rowName returns the name of the row that a member of the team writes.
func (p *transport) rowName(member int) string {
	return p.group.team.Name + "/row/" + strconv.Itoa(member)
}

// reach waits for this member's row at a partner. The partner makes the row at its first
// message with this member. So no member waits here before it has made its own row.
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
