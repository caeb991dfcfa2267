package fabric

import (
	"sync"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// opTable finds a binding's operations by the id of their work request.
type opTable struct {
	mu    sync.Mutex
	all   []*op
	free  *op
	words []driver.Segment // registered words without an operation
	mrs   []*verbs.MR      // of the words
}

// take returns a clean operation on r.
func (t *opTable) take(r *Remote) *op {
	t.mu.Lock()
	o := t.free
	if o == nil {
		o = &op{f: r.Peer.f, bind: r.Peer.bind}
		t.all = append(t.all, o)
		o.id = uint64(len(t.all))
	} else {
		t.free = o.next
	}
	if o.word.Mem == nil || o.bind.info.Memory.LocalKeys && o.word.LKey == (driver.Key{}) {
		o.unfit = t.equip(o)
	}
	t.mu.Unlock()
	o.peer, o.remote, o.next = r.Peer, r, nil
	o.byCPU, o.ordered, o.alone, o.status, o.err = false, false, false, driver.Success, nil
	o.phase.Store(underWay)
	return o
}

// wordsBatch is the number of words that one registration makes.
const wordsBatch = 256

// equip gives o its word.
func (t *opTable) equip(o *op) error {
	if !o.bind.info.Memory.LocalKeys {
		o.word.Mem = make([]byte, 8)
		return nil
	}
	if len(t.words) == 0 {
		mr, err := o.bind.pd.RegMR(o.f.ctx, memory.Heap(8*wordsBatch), driver.LocalWrite)
		if err != nil {
			o.word.Mem = make([]byte, 8) // no device takes it
			return err
		}
		t.mrs, t.words = append(t.mrs, mr), pieces(mr, 8)
	}
	o.word, t.words = t.words[0], t.words[1:]
	return nil
}

// close takes the registrations out. No goroutine posts any more.
func (t *opTable) close() []*verbs.MR {
	t.mu.Lock()
	defer t.mu.Unlock()
	mrs := t.mrs
	t.mrs = nil
	return mrs
}

// give takes an op back, with its stage or lease. Its older Requests are over from then on.
func (t *opTable) give(o *op) {
	o.giveBack(o.bind)
	o.wr, o.seg, o.old, o.unfit = [3]driver.WorkRequest{}, [3]driver.Segment{}, nil, nil
	o.uses.Add(1)
	t.mu.Lock()
	o.next, t.free = t.free, o
	t.mu.Unlock()
}

// find returns the operation of an id. It returns nil if there is none, or if the id
// belongs to a request of an earlier use.
func (t *opTable) find(id uint64) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	place := id & (1<<32 - 1)
	if place == 0 || place > uint64(len(t.all)) {
		return nil
	}
	o := t.all[place-1]
	if place != id && id != requestID(place, o.uses.Load()) {
		return nil
	}
	return o
}
