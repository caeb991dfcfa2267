package store

// A key is a piece of a tensor, and its server.
type key struct {
	from, to int // in the parameters
	server   int
	at       int // in the server's share
}

func (k key) len() int { return k.to - k.from }

// A layout says where all is at each rank. A server's elements are
//
//	weights | received gradient of worker 0 | worker 1 | ... | copies to send | rings
//
// Where workers read copies, each has its own copy to send: the server writes it when this worker
// pulls, and only then.
//
// and behind them, or in front at a rank that only works, those of a worker:
//
//	weights | gradient | received weights | copies to send
//
// The slots are the same at all ranks; a rank uses those of its part.
//
//	server   commits of W workers (at the leader) | requests, W x B | heads of rings, W | log
//	worker   replies of S servers | acknowledged requests, S x B | tails of rings, S
type layout struct {
	keys             []key
	shares           []int // elements of each server's keys
	servers, workers int
	alone            bool // one rank is the server and the worker
	buffers, params  int
	ring             int // elements of a ring, 0 without rings
	copies           int
	sets             int // copies to send: one for each worker if they read copies, else one or none
	log              int // entries: no more are under way
}

// newLayout divides the tensors among the servers by pieces, and the window among what the options
// need.
func newLayout(o Options, ranks int) layout {
	l := layout{servers: o.Servers, workers: max(ranks-o.Servers, 1), alone: ranks == 1, buffers: o.Buffers, copies: o.Copies,
		params: o.Tensors[len(o.Tensors)-1]}
	switch {
	case o.Read && (o.Mode != Sync || o.Copies == 2):
		l.sets = l.workers
	case o.Copies == 2:
		l.sets = 1
	}
	l.log = 2*l.workers + 2 // a worker waits for its reply: an entry to apply, one to reply
	l.shares = make([]int, l.servers)
	from := 0
	for _, end := range o.Tensors {
		for ; from < end; from = min(from+o.Piece, end) {
			l.place(from, min(from+o.Piece, end))
		}
	}
	if o.Ring {
		l.ring = 2 * o.Piece
	}
	return l
}

// place gives a key to the server that has the fewest elements.
func (l *layout) place(from, to int) {
	least := 0
	for s, n := range l.shares {
		if n < l.shares[least] {
			least = s
		}
	}
	l.keys = append(l.keys, key{from, to, least, l.shares[least]})
	l.shares[least] += to - from
}

// workerAt returns the number of the worker at a rank, -1 for none. One rank alone is
// both server and worker.
func (l *layout) workerAt(rank int) int {
	if l.alone {
		return 0
	}
	return max(rank-l.servers, -1)
}

// workerRank returns the rank of worker w.
func (l *layout) workerRank(w int) int {
	if l.alone {
		return 0
	}
	return l.servers + w
}

// Places of a server.

func (l *layout) received(s, w int) int { return l.shares[s] * (1 + w) }
func (l *layout) toSend(s, w int) int   { return l.shares[s] * (1 + l.workers + w%max(l.sets, 1)) }
func (l *layout) ringAt(s, w int) int   { return l.shares[s]*(1+l.workers+l.sets) + w*l.ring }
func (l *layout) endOf(s int) int       { return l.ringAt(s, l.workers) }

// copiesOf returns n if a tensor has so many copies that it needs room for this one.
func (l *layout) copiesOf(n, from int) int {
	if l.copies >= from {
		return n
	}
	return 0
}

// worker returns where a worker's elements begin.
func (l *layout) workerBase() int {
	if l.alone {
		return l.endOf(0)
	}
	return 0
}

// pulled returns where weights arrive at a worker.
func (l *layout) pulled() int { return l.workerBase() + 2*l.copiesOf(l.params, 1) }

// elements returns how many elements of the window a rank has: those of a server, of a worker or of
// both.
func (l *layout) elements(rank int) (n int) {
	if rank < l.servers {
		n = l.endOf(rank)
	}
	if l.workerAt(rank) >= 0 {
		n += 2*l.params + l.copiesOf(l.params, 1) + l.copiesOf(l.params, 2)
	}
	return n
}

// Slots.

func (l *layout) commitSlot(w int) int     { return w }
func (l *layout) requestSlot(w, b int) int { return l.workers + w*l.buffers + b }
func (l *layout) headSlot(w int) int       { return l.workers*(1+l.buffers) + w }
func (l *layout) logSlot(at uint64) int    { return l.headSlot(l.workers) + int(at%uint64(l.log)) }
func (l *layout) replySlot(s int) int      { return l.headSlot(l.workers) + l.log + s }
func (l *layout) ackSlot(s, b int) int     { return l.replySlot(l.servers) + s*l.buffers + b }
func (l *layout) tailSlot(s int) int       { return l.ackSlot(l.servers, 0) + s }
func (l *layout) slots() int               { return l.tailSlot(l.servers) }
