package store

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// wait waits for signals, by polling or asleep. WaitNotify polls for a moment, too, before it
// sleeps.
func (st *Store) wait(ctx context.Context, u window.Until) (slot int, value uint64, err error) {
	for looks := 1; st.o.Poll; looks++ {
		slot, value, ok, err := st.mem.TestNotify(u)
		if ok || err != nil {
			return slot, value, err
		}
		goruntime.Gosched()
		if looks%1024 == 0 && (ctx.Err() != nil || st.job.Context().Err() != nil) {
			break // after a death, a wait says whose
		}
	}
	return st.mem.WaitNotify(ctx, u)
}

// An event is a signal to a server, or the death of a rank.
type event struct {
	slot  int
	value uint64
	dead  int // a rank, if slot is -1
}

// A watch finds the events of a server. One goroutine uses it.
type watch struct {
	st     *Store
	from   []int    // living ranks that send signals
	slots  []int    // the last one is that of the next entry of the log, at all but the leader
	values []uint64 // as last seen
	follow bool
	at     uint64 // entries seen
	log    []uint64
}

// newWatch lists the slots for which the server waits. Server 0 hears of commits from the workers,
// the others read its log.
func (s *server) newWatch() *watch {
	st := s.st
	w := &watch{st: st, follow: s.leader == nil, log: make([]uint64, st.layout.log)}
	for n := range st.workers {
		if s.leader != nil {
			w.slots = append(w.slots, st.commitSlot(n))
		}
		for b := range st.buffers {
			w.slots = append(w.slots, st.requestSlot(n, b))
		}
		if st.ring > 0 {
			w.slots = append(w.slots, st.headSlot(n))
		}
	}
	w.from = []int{0}
	if w.follow {
		w.slots = append(w.slots, st.logSlot(0))
	} else {
		w.from = w.from[:0]
		for rank := range st.mem.Team().Size() {
			if rank != 0 || st.alone {
				w.from = append(w.from, rank)
			}
		}
	}
	w.values = make([]uint64, len(w.slots))
	return w
}

// find waits for an event. It finds the same one again until passed.
func (w *watch) find(ctx context.Context) (event, error) {
	slot, value, err := w.st.wait(ctx, window.Until{Slots: w.slots, Values: w.values, Condition: window.NotEqual, From: w.from})
	var gone *runtime.RankError
	switch {
	case err == nil:
		return event{slot: slot, value: value}, nil
	case errors.As(err, &gone) && gone.Rank >= w.st.servers:
		return event{slot: -1, dead: gone.Rank}, nil
	}
	return event{}, err
}

// passed goes on behind an event.
func (w *watch) passed(e event) {
	if e.slot < 0 {
		w.from = slices.DeleteFunc(w.from, func(rank int) bool { return rank == e.dead })
		return
	}
	last := len(w.slots) - 1
	if !w.follow || e.slot != w.slots[last] {
		w.values[slices.Index(w.slots, e.slot)] = e.value
		return
	}
	w.log[w.at%uint64(len(w.log))] = e.value
	w.at++
	w.slots[last], w.values[last] = w.st.logSlot(w.at), w.log[w.at%uint64(len(w.log))]
}

// pump passes events on until ctx ends.
func (w *watch) pump(ctx context.Context, events chan<- event) error {
	for {
		e, err := w.find(ctx)
		if err != nil {
			return err
		}
		select {
		case events <- e:
			w.passed(e)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
