package board

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/wait"
)

// A member finds another member's board at the first use. So a call connects the members
// that exchange data or wake each other, and no others:
//
//	AllReduce of short vectors    each member and member 0 (in small teams the last to come)
//	Broadcast, Gather, ...        each member and the root
//	Scan                          each member and the members beside it
//
// A member that tells how far it is (tell) finds the boards of those that wait.

// reach finds a member's board.
func (b *Board) reach(ctx context.Context, m int) error {
	if b.peers[m].head != nil {
		return nil
	}
	return b.find(ctx, []int{m}, b.add)
}

// reachAll finds the boards of all members.
func (b *Board) reachAll(ctx context.Context) error {
	if len(b.bells) == b.n-1 {
		return nil
	}
	var missing []int
	for m := range b.peers {
		if b.peers[m].head == nil {
			missing = append(missing, m)
		}
	}
	return b.find(ctx, missing, b.add)
}

// add notes a member's board and bell.
func (b *Board) add(m int, mem []byte, bell wait.Ringer) error {
	size := HeadSize
	if b.buffers == nil {
		size += buffersSize(b.large)
	}
	if len(mem) < size || !aligned(mem) {
		return fmt.Errorf("board: member %d's has %d bytes, %d at a multiple of %d are needed", m, len(mem), size, lineSize)
	}
	h := headAt(mem)
	b.peers[m] = peer{h, &h.lines, &rest{bell: bell}}
	if b.buffers == nil {
		if err := b.addBuffers(m, mem[HeadSize:]); err != nil {
			return err
		}
	}
	if m == b.rank {
		return nil
	}
	if b.bells = append(b.bells, bell); len(b.bells) == b.n-1 {
		b.in = make([][]byte, b.n)
	}
	return nil
}

// addBuffers notes a member's buffers.
func (b *Board) addBuffers(m int, mem []byte) error {
	size := buffersSize(b.large)
	if len(mem) < size {
		return fmt.Errorf("board: buffers of member %d have %d bytes, %d are needed", m, len(mem), size)
	}
	b.peers[m].buffers = mem[:size:size]
	if m == b.rank && b.buffers == nil {
		b.present = size
	}
	return nil
}

// withBuffers returns another member's board once its buffers are found. The member has posted data there.
func (b *Board) withBuffers(m int) (*peer, error) {
	p := &b.peers[m]
	if p.buffers != nil {
		return p, nil
	}
	mem, err := b.others(m)
	if err == nil {
		err = b.addBuffers(m, mem)
	}
	return p, err
}

// ring wakes the waiting members after a post.
func (b *Board) ring(ctx context.Context) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
	for _, bell := range b.bells {
		bell.Ring()
	}
	return nil
}

// ringAt wakes a member that waits for this one's post.
func (b *Board) ringAt(ctx context.Context, m int) error {
	if err := b.reach(ctx, m); err != nil {
		return err
	}
	b.peers[m].bell.Ring()
	return nil
}
