package collectives

import (
	"context"
	"strconv"
)

// Beside the pipes, a member has a row for each other one that it exchanges messages
// with, memory that the other alone writes:
//
//	0       64      128
//	| offer | taken | slot | slot | ...
//
// The offer says where the other takes a long message (rendezvous), the slots hold its
// short messages to this member, and taken is how many of this member's it took (eager).
const (
	rowOffer = 0
	rowTaken = 64
	rowSlots = 128
	rowSize  = rowSlots + slots*slotSize
)

// rowName names the memory that a member of the team writes to.
func (p *carrier) rowName(member int) string {
	return p.group.team.Name + "/row/" + strconv.Itoa(member)
}

// newRow makes the row of a member.
func (p *carrier) newRow(ctx context.Context, member int) ([]byte, error) {
	team := p.group.team
	block, err := team.Arena().Alloc(rowSize)
	if err != nil {
		return nil, err
	}
	_, err = team.Register(ctx, p.rowName(member), block.Memory)
	return block.Bytes, err
}

// reach finds this member's row at a partner, which makes it when it comes to its first
// message with this one. So no member waits here before its own rows are made.
func (p *carrier) reach(ctx context.Context, member int) (err error) {
	with := &p.partners[member]
	if with.there == nil {
		with.there, err = p.group.team.AwaitRegion(ctx, p.group.team.Members[member], p.rowName(p.Rank()))
	}
	return err
}
