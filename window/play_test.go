package window_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/window"
)

// play does an action and returns the value that it reads.
func play(ctx context.Context, s *stage, round int, a action) (read []uint64, err error) {
	if a.flush {
		for _, w := range s.windows {
			if err := w.Flush(ctx, a.target); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case a.sum && a.index == locked:
		return nil, s.addUnderLock(ctx, a)
	case a.way == leased:
		return s.playLeased(ctx, round, a)
	case a.way == behind && a.index < 2:
		a.way = direct
	}
	return playIn(ctx, s.windows[a.way], s.windows[a.way], round, a)
}

// addUnderLock adds to the locked element of the target, which it finds by a pointer.
func (s *stage) addUnderLock(ctx context.Context, a action) error {
	p, err := s.windows[direct].Pointer(a.target, 0)
	if err != nil {
		return err
	}
	w, target, index, err := window.Find(s.r.World, p.Add(locked))
	if err != nil {
		return err
	}
	held, err := w.Lock(ctx, target, window.Exclusive)
	if err != nil {
		return err
	}
	v, err := w.GetValue(ctx, target, index)
	if err == nil {
		err = w.PutValue(ctx, target, index, v+a.value)
	}
	return errors.Join(err, held.Unlock(ctx))
}

// playLeased does an action on attached memory.
func (s *stage) playLeased(ctx context.Context, round int, a action) (read []uint64, err error) {
	p, err := s.heads.GetValue(ctx, a.target, 0)
	if err != nil {
		return nil, err
	}
	opened, err := s.windows[direct].Open(ctx, p.Add(a.index-attached))
	if err != nil {
		return nil, err
	}
	read, err = playIn(ctx, opened.Window, s.windows[direct], round, a)
	return read, errors.Join(err, opened.Close(ctx))
}

// playIn does an action in w. A signal goes to an element of words.
func playIn(ctx context.Context, w, words *window.Window[uint64], round int, a action) (read []uint64, err error) {
	slot := window.Signal{Slot: a.index % 4, Add: true, Value: a.value}
	word := window.SignalAt[uint64]{Window: words, Index: signaled(round, a), Value: a.value, Add: true}
	even := (round+a.index)%2 == 0
	switch a.way {
	case behind:
		a.index -= 2
		word.Index -= 2
	case leased:
		a.index -= attached
	}
	if a.sum {
		if even {
			if a.value%2 == 0 {
				return nil, window.Accumulate(ctx, w, a.target, a.index, []uint64{a.value}, window.Sum[uint64]())
			}
			return nil, window.AtomicAdd(ctx, w, a.target, a.index, a.value)
		}
		return nil, window.AtomicXor(ctx, w, a.target, a.index, a.value)
	}
	buf := make([]uint64, a.n)
	for i := range buf {
		buf[i] = a.value + uint64(i)
	}
	alternate := window.Strided((a.n+1)/2, 1, 2)
	switch a.kind {
	case doPutBlocks:
		return nil, w.PutBlocks(ctx, a.target, a.index, alternate, buf, alternate)
	case doStartPutBlocks:
		return nil, wait(ctx)(w.StartPutBlocks(ctx, a.target, a.index, alternate, buf, alternate))
	case doNotifyBlocks:
		return nil, w.PutBlocksNotify(ctx, a.target, a.index, alternate, buf, alternate, slot)
	case doGetBlocks:
		buf = buf[:(a.n+1)/2]
		return buf, w.GetBlocks(ctx, a.target, a.index, alternate, buf, window.Blocks{})
	case doPutSignal:
		return nil, window.PutSignal(ctx, w, a.target, a.index, buf, word)
	case doStartPutSignal:
		return nil, wait(ctx)(window.StartPutSignal(ctx, w, a.target, a.index, buf, word))
	case doPut:
		return nil, w.Put(ctx, a.target, a.index, buf)
	case doNotify:
		return nil, w.PutNotify(ctx, a.target, a.index, buf, slot)
	case doStartPut:
		return nil, wait(ctx)(w.StartPut(ctx, a.target, a.index, buf))
	case doStartGet:
		return buf, wait(ctx)(w.StartGet(ctx, a.target, a.index, buf))
	case doGet:
		return buf, w.Get(ctx, a.target, a.index, buf)
	case doPutValue:
		return nil, w.PutValue(ctx, a.target, a.index, a.value)
	case doStore:
		return nil, window.AtomicStore(ctx, w, a.target, a.index, a.value)
	case doAccumulate:
		return nil, window.Accumulate(ctx, w, a.target, a.index, buf, operatorOf(round))
	case doGetAccumulate:
		return buf, wait(ctx)(window.StartGetAccumulate(ctx, w, a.target, a.index, buf, buf, operatorOf(round)))
	case doStartFetch:
		old := make([]uint64, 1)
		return old, wait(ctx)(window.StartFetchOp(ctx, w, a.target, a.index, a.value, operatorOf(round), &old[0]))
	case doOrder:
		return nil, w.Order(a.target)
	case doSwap:
		old, err := window.Swap(ctx, w, a.target, a.index, a.value)
		return []uint64{old}, err
	case doCompareSwap:
		seen, err := window.CompareSwap(ctx, w, a.target, a.index, a.value%2, a.value)
		return []uint64{seen}, err
	}
	return nil, fmt.Errorf("no action %d", a.kind)
}

func wait(ctx context.Context) func(window.Request, error) error {
	return func(r window.Request, err error) error {
		if err != nil {
			return err
		}
		return r.Wait(ctx)
	}
}
