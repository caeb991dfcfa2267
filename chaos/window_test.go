package chaos

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/window"
)

// oneSided makes n random steps on the window.
func (p *player) oneSided(ctx context.Context, n int) {
	steps := []func(context.Context, int){p.put, p.put, p.startPut, p.putNotify, p.get, p.get, p.startGet, p.fetch, p.update, p.count,
		p.flush, p.order, p.guard, p.wait}
	for range n {
		steps[p.own.IntN(len(steps))](ctx, p.target())
	}
}

// filled returns a cell's worth of v.
func (p *player) filled(v int64) []int64 { return slices.Repeat([]int64{v}, p.width) }

func (p *player) put(ctx context.Context, target int) {
	f, c, v := drawFuse(ctx, p.own), p.own.IntN(cells), p.value()
	defer f.stop()
	src := p.filled(v)
	err := p.w.Put(f, target, p.cellAt(c), src)
	copy(src, p.filled(stain)) // the source is this rank's again
	p.cells[target][c].wrote(v, p.judge("Put", f, err))
}

func (p *player) startPut(ctx context.Context, target int) {
	f, c, v := drawFuse(ctx, p.own), p.own.IntN(cells), p.value()
	defer f.stop()
	src := p.filled(v)
	req, err := p.w.StartPut(ctx, target, p.cellAt(c), src)
	if err == nil {
		err = req.Wait(f)
	}
	copy(src, p.filled(stain))
	p.cells[target][c].wrote(v, p.judge("StartPut", f, err))
}

func (p *player) putNotify(ctx context.Context, target int) {
	f, c, v := drawFuse(ctx, p.own), p.own.IntN(cells), p.value()
	defer f.stop()
	err := p.w.PutNotify(f, target, p.cellAt(c), p.filled(v), window.Signal{Slot: p.Me, Value: 1, Add: true})
	e := p.judge("PutNotify", f, err)
	p.cells[target][c].wrote(v, e)
	p.signals[target].count(e)
}

func (p *player) get(ctx context.Context, target int) {
	f, c := drawFuse(ctx, p.own), p.own.IntN(cells)
	defer f.stop()
	dst := make([]int64, p.width)
	err := p.w.Get(f, target, p.cellAt(c), dst)
	p.got("Get", target, c, dst, p.judge("Get", f, err))
}

func (p *player) startGet(ctx context.Context, target int) {
	f, c := drawFuse(ctx, p.own), p.own.IntN(cells)
	defer f.stop()
	dst := make([]int64, p.width)
	req, err := p.w.StartGet(ctx, target, p.cellAt(c), dst)
	if err == nil {
		err = req.Wait(f)
	}
	p.got("StartGet", target, c, dst, p.judge("StartGet", f, err))
}

// got compares the result of a get with the model, or abandons its buffer.
func (p *player) got(step string, target, c int, dst []int64, e effect) {
	if e != sure {
		copy(dst, p.filled(stain))
		p.buffers = append(p.buffers, abandoned{p.at(step, target), dst})
		return
	}
	p.compare(step, target, c, dst)
}

func (p *player) compare(step string, target, c int, got []int64) {
	model := p.cells[target][c]
	for _, v := range slices.Compact(slices.Clone(got)) {
		p.True(model.allows(v), "%s: cell %d holds %#x, the model has %+v", p.at(step, target), c, v, model)
	}
}

// fetch makes a fetching atomic on a word of this rank's.
func (p *player) fetch(ctx context.Context, target int) {
	f, i, v := drawFuse(ctx, p.own), p.own.IntN(words), p.value()
	defer f.stop()
	step, update := "FetchAdd", func(old int64) int64 { return old + v }
	op := window.FetchAdd[int64]
	if p.own.IntN(2) == 0 {
		step, update, op = "Swap", func(int64) int64 { return v }, window.Swap[int64]
	}
	old, err := op(f, p.w, target, p.wordAt(i), v)
	e, w := p.judge(step, f, err), &p.words[target][i]
	if e == sure {
		p.Contains(*w, old, "%s: word %d", p.at(step, target), i)
		*w = word{old}
	}
	w.applied(e, update)
	p.collapse(ctx, target, i)
}

// update makes an atomic without a result on a word of this rank's.
func (p *player) update(ctx context.Context, target int) {
	f, i, v := drawFuse(ctx, p.own), p.own.IntN(words), p.value()
	defer f.stop()
	step, update := "AtomicAdd", func(old int64) int64 { return old + v }
	op := window.AtomicAdd[int64]
	if p.own.IntN(2) == 0 {
		step, update, op = "AtomicStore", func(int64) int64 { return v }, window.AtomicStore[int64]
	}
	e := p.judge(step, f, op(f, p.w, target, p.wordAt(i), v))
	p.words[target][i].applied(e, update)
	p.collapse(ctx, target, i)
}

// collapse reads a word of which the model has many values.
func (p *player) collapse(ctx context.Context, target, i int) {
	w := &p.words[target][i]
	if len(*w) < 16 {
		return
	}
	p.load(ctx, target, i)
}

// load compares a word with the model.
func (p *player) load(ctx context.Context, target, i int) {
	w := &p.words[target][i]
	v, err := window.AtomicLoad(ctx, p.w, target, p.wordAt(i))
	if p.judge("AtomicLoad", p.certain(ctx), err) == sure {
		p.Contains(*w, v, "%s: word %d", p.at("AtomicLoad", target), i)
		*w = word{v}
	}
}

// count adds to the counter of all ranks.
func (p *player) count(ctx context.Context, target int) {
	f := drawFuse(ctx, p.own)
	defer f.stop()
	_, err := window.FetchAdd(f, p.w, target, p.counterAt(), 1)
	p.counted[target].count(p.judge("FetchAdd", f, err))
}

// guard adds to a plain element below the lock.
func (p *player) guard(ctx context.Context, target int) {
	f := drawFuse(ctx, p.own)
	defer f.stop()
	held, err := p.w.Lock(f, target, window.Exclusive)
	if p.judge("Lock", f, err) != sure {
		return
	}
	v, err := p.w.GetValue(ctx, target, p.guardedAt())
	if e := p.judge("GetValue", p.certain(ctx), err); e == sure {
		err = p.w.PutValue(ctx, target, p.guardedAt(), v+1)
		p.guarded[target].count(p.judge("PutValue", p.certain(ctx), err))
	}
	p.judge("Unlock", p.certain(ctx), held.Unlock(ctx))
}

func (p *player) flush(ctx context.Context, target int) {
	f := drawFuse(ctx, p.own)
	defer f.stop()
	if p.judge("Flush", f, p.w.Flush(f, target)) == sure {
		p.settle(target)
	}
}

func (p *player) order(_ context.Context, target int) {
	if err := p.w.Order(target); !p.isVictimDeath(err) {
		p.NoError(err, p.at("Order", target))
	}
	p.settle(target)
}

func (p *player) settle(target int) {
	for _, c := range p.cells[target] {
		c.order()
	}
}

// wait waits for a signal that no rank sends.
func (p *player) wait(ctx context.Context, _ int) {
	f := drawFuse(ctx, p.own)
	defer f.stop()
	until := window.Until{Slots: []int{p.Me}, Condition: window.AtLeast, Value: 1 << 40}
	if f.name == "no fuse" {
		_, _, ok, err := p.w.TestNotify(until)
		p.judge("TestNotify", f, err)
		p.False(ok)
		return
	}
	_, _, err := p.w.WaitNotify(f, until)
	p.Error(err)
	p.judge("WaitNotify", f, err)
}
