package collectives

import (
	"context"
	"errors"
	"slices"

	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

const (
	// boardRoom bounds the bytes of one element for each member on a board,
	// boardMembers the members that have one.
	boardRoom    = 32 << 10
	boardMembers = board.MaxMembers
	// placedFrom is the length from which it pays to find out where a slice lies.
	placedFrom = 4 << 10
	// These compile only if the room of a team holds the head of a board, and if a member that is ahead remembers
	// all calls of an inquiry.
	_ = uint(team.RoomSize - board.HeadSize)
	_ = uint(team.Remembered - board.Ahead - team.Recounted)
)

// fitsBoard reports whether n members can make a call on boards. They always can along a
// graph: each edge has a queue of its own, which takes elements in pieces.
func fitsBoard(c *Call, n int) bool {
	return c.graph != nil || n <= boardMembers && c.size <= boardRoom && c.size*n <= boardRoom
}

// A boardGroup is a board and the members that use it.
type boardGroup struct {
	board   *board.Board
	members []int // by team rank
	args    board.Args
}

// onBoard makes a call in mapped memory. A staged call copies; it uses no slice in place.
func (g *group) onBoard(ctx context.Context, c *Call, staged bool) error {
	if c.graph != nil {
		return g.onEdges(ctx, c, staged)
	}
	if g.boardGroup == nil {
		var err error
		if g.boardGroup, err = g.newBoardGroup("/board", allMembers(len(g.team.Members))); err != nil {
			return err
		}
	}
	a := &g.boardGroup.args
	a.Root, a.Elem, a.Send, a.Recv, a.Combine, a.ByProgram, a.Single = c.root, c.size, c.send, c.recv, c.combine, c.byProgram, c.single
	a.SendAt, a.RecvAt = board.Place{}, board.Place{}
	if !staged {
		a.SendAt, a.RecvAt = g.placeOf(c.send), g.placeOf(c.recv)
	}
	if c.of.is(varied) {
		l := g.layOut(c)
		a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = l.sendCounts, l.sendOffsets, l.recvCounts, l.recvOffsets
	} else if a.SendCounts != nil || a.RecvCounts != nil {
		a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = nil, nil, nil, nil
	}
	err := c.of.board(g.boardGroup.board, ctx, g.key.Seq, g.key.Chain, a)
	a.Send, a.Recv = nil, nil // the caller owns them
	if err != nil {
		return g.boardVerdict(ctx, g.boardGroup, err)
	}
	return nil
}

// allMembers returns the members of a team of n.
func allMembers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// boardVerdict turns an error of a board into the verdict of the team. Members whose calls
// differ compare them.
func (g *group) boardVerdict(ctx context.Context, at *boardGroup, err error) error {
	var differs *board.Differs
	var length *board.LengthError
	switch {
	case errors.As(err, &differs):
		seq := g.key.Seq
		if differs.Seq != 0 {
			seq = min(seq, differs.Seq)
		}
		return g.team.Differs(ctx, seq, at.members[differs.Member])
	case errors.Is(err, board.ErrGone):
		return g.team.Await(ctx, func() bool { return false }) // until this member learns of the failure
	case errors.As(err, &length):
		return g.unlike(at.members[length.Member], length.Theirs, length.Mine)
	}
	return err
}

// newBoardGroup makes this member's board among members, in the room of the team, and names its buffers. A
// team has one board at most. Each member finds the boards of the others when it uses them.
func (g *group) newBoardGroup(name string, members []int) (*boardGroup, error) {
	name = g.team.Name + name
	b, err := board.New(board.Config{Rank: slices.Index(members, g.team.Rank), Size: len(members), Mem: g.team.Room,
		Crowded: g.team.Crowded(), Await: g.team.AwaitMapped,
		Find: func(_ context.Context, which []int, found board.Found) error { // the call has g.ctx
			return g.findBoards(members, which, found)
		},
		Buffers: g.buffersOf(name, len(members)),
		FindBuffers: func(member int) ([]byte, error) {
			r, err := g.team.AwaitRegion(g.bound.to(g.ctx, g.team, g.key), g.team.Members[members[member]], name)
			if err != nil {
				return nil, err
			}
			return r.Mem, nil
		},
		Dead: func(member int) bool { return g.dead(members[member]) },
		View: func(member int, region, offset uint64, n int) []byte {
			return g.view(members[member], region, offset, n)
		}})
	return &boardGroup{board: b, members: members}, err
}

// buffersOf returns the function that makes a board's buffers present. Its first call allocates them.
func (g *group) buffersOf(name string, members int) func(n int) ([]byte, error) {
	var block arena.Block
	return func(n int) (_ []byte, err error) {
		if block.Bytes == nil {
			block, err = g.reservePart(g.ctx, name, board.BuffersSize(members), n)
		} else {
			err = g.team.Arena().Complete(block, n)
		}
		return block.Bytes, err
	}
}

// findBoards connects to the boards of some of members, all at once.
func (g *group) findBoards(members, which []int, found board.Found) error {
	at := make([]int, len(which))
	for i, m := range which {
		at[i] = members[m]
	}
	return g.team.RoomsOf(g.ctx, at, func(i int, room []byte, bell wait.Ringer) error { return found(which[i], room, bell) })
}

// dead reports whether a member has ended.
func (g *group) dead(member int) bool { return g.team.Fate(g.team.Members[member]) != nil }

// placeOf returns where a slice lies, if other members can find it and that pays.
func (g *group) placeOf(mem []byte) board.Place {
	if len(mem) < placedFrom {
		return board.Place{}
	}
	return g.find(mem)
}

// find returns where a slice of any length lies, if other members can find it.
func (g *group) find(mem []byte) board.Place {
	id, offset, ok := g.team.RegionOf(mem)
	if !ok {
		return board.Place{}
	}
	return board.Place{Region: id, Offset: uint64(offset)}
}

// view returns memory of another member's where that is mapped. It checks the bounds that
// the member gave.
func (g *group) view(member int, region, offset uint64, n int) []byte {
	rank := g.team.Members[member]
	r := g.team.Reached(rank, region)
	if r == nil {
		var err error
		if r, err = g.team.Reach(g.bound.to(g.ctx, g.team, g.key), rank, region); err != nil {
			return nil
		}
	}
	if size := uint64(len(r.Mem)); n < 0 || offset > size || uint64(n) > size-offset {
		return nil
	}
	return r.Mem[offset:][:n:n]
}
