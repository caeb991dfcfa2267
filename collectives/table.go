package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A collective describes all calls of one kind.
type collective struct {
	name    string
	family  message.Collective // has the algorithms by messages
	buffers buffers
	traits  traits

	// Members that map each other's memory use one of the two.
	board boardCall
	edges edgeCall
}

// buffers says how input and output of a call are laid out.
type buffers uint8

const (
	anything  buffers = iota
	vectors           // one vector each, of one length
	gathers           // the output has a block of each member
	scatters          // the input has a block for each member
	exchanges         // both
)

// traits holds further properties of a collective.
type traits uint8

const (
	rooted    traits = 1 << iota // one member gives or gets all, and it alone has lengths to check
	combining                    // an operator
	varied                       // blocks of different lengths
	plain     traits = 0
)

func (c *collective) is(t traits) bool { return c.traits&t != 0 }

// A boardCall does a collective on a board, an edgeCall along the edges of a graph.
type (
	boardCall = func(*board.Board, context.Context, uint64, uint64, *board.Args) error
	edgeCall  = func(*board.Edges, context.Context, uint64, uint64, *board.Args) error
)

// The table of collectives. Another collective is another row, and the function that makes
// its call.
var (
	broadcast      = &collective{"Broadcast", message.Broadcast, anything, rooted, (*board.Board).Broadcast, nil}
	reduce         = &collective{"Reduce", message.Reduce, vectors, rooted | combining, (*board.Board).Reduce, nil}
	allReduce      = &collective{"AllReduce", message.AllReduce, vectors, combining, (*board.Board).AllReduce, nil}
	gather         = &collective{"Gather", message.Gather, gathers, rooted, (*board.Board).Gather, nil}
	gatherV        = &collective{"GatherV", message.Gather, gathers, rooted | varied, (*board.Board).GatherV, nil}
	allGather      = &collective{"AllGather", message.AllGather, gathers, plain, (*board.Board).AllGather, nil}
	allGatherV     = &collective{"AllGatherV", message.AllGather, gathers, varied, (*board.Board).AllGather, nil}
	scatter        = &collective{"Scatter", message.Scatter, scatters, rooted, (*board.Board).Scatter, nil}
	scatterV       = &collective{"ScatterV", message.Scatter, scatters, rooted | varied, (*board.Board).ScatterV, nil}
	reduceScatter  = &collective{"ReduceScatter", message.ReduceScatter, scatters, combining, (*board.Board).ReduceScatter, nil}
	reduceScatterV = &collective{"ReduceScatterV", message.ReduceScatter, scatters, combining | varied, (*board.Board).ReduceScatter, nil}
	allToAll       = &collective{"AllToAll", message.AllToAll, exchanges, plain, (*board.Board).AllToAll, nil}
	allToAllV      = &collective{"AllToAllV", message.AllToAll, exchanges, varied, (*board.Board).AllToAllV, nil}
	scan           = &collective{"Scan", message.Scan, vectors, combining, (*board.Board).Scan, nil}
	exScan         = &collective{"ExScan", message.ExScan, vectors, combining, (*board.Board).ExScan, nil}

	neighborAllGather  = &collective{"NeighborAllGather", message.NeighborAllGather, gathers, plain, nil, (*board.Edges).AllGather}
	neighborAllGatherV = &collective{"NeighborAllGatherV", message.NeighborAllGather, gathers, varied, nil, (*board.Edges).AllGather}
	neighborAllToAll   = &collective{"NeighborAllToAll", message.NeighborAllToAll, exchanges, plain, nil, (*board.Edges).AllToAll}
	neighborAllToAllV  = &collective{"NeighborAllToAllV", message.NeighborAllToAll, exchanges, varied, nil, (*board.Edges).AllToAll}
)

// nothing is the collective of an empty Call.
var nothing = &collective{name: "nothing"}
