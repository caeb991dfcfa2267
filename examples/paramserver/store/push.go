package store

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// push moves the gradient. It returns when all of it lies at the servers.
func (w *Worker) push(ctx context.Context) error {
	if w.st.copies == 2 {
		w.st.copy(w.toSend, w.grads)
	}
	switch {
	case w.st.o.Ring:
		return w.pushThroughRings(ctx)
	case w.st.o.Buffers > 0:
		return w.pushByRequests(ctx)
	}
	w.starts = w.starts[:0]
	for _, k := range w.st.keys {
		r, err := w.st.mem.StartPut(ctx, k.server, w.at(k), w.toSend[k.from:k.to])
		if err != nil {
			return err
		}
		w.starts = append(w.starts, r)
	}
	if err := window.WaitAll(ctx, w.starts); err != nil {
		return err
	}
	return w.st.mem.FlushAll(ctx)
}

// at returns where a key's gradient arrives at its server.
func (w *Worker) at(k key) int { return w.st.received(k.server, w.n) + k.at }

// pushByRequests has one request for each key. A server acknowledges it when the key is
// there; then its buffer is free.
//
//	request   number << 32 | key
func (w *Worker) pushByRequests(ctx context.Context) error {
	for i, k := range w.st.keys {
		b := int(w.sent[k.server] % uint64(w.st.buffers))
		if err := w.acknowledged(ctx, k.server, b); err != nil {
			return err
		}
		w.sent[k.server]++
		request := w.sent[k.server]<<32 | uint64(i)
		src := w.toSend[k.from:k.to]
		if w.st.o.Read {
			src = nil // the server gets it
		}
		err := w.st.mem.PutNotify(ctx, k.server, w.at(k), src, window.Signal{Slot: w.st.requestSlot(w.n, b), Value: request})
		if err != nil {
			return err
		}
		w.last[k.server][b] = request
	}
	for s := range w.last {
		for b := range w.last[s] {
			if err := w.acknowledged(ctx, s, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// acknowledged waits until the last request in a buffer is done.
func (w *Worker) acknowledged(ctx context.Context, s, b int) error {
	_, _, err := w.st.wait(ctx, window.Until{Slots: []int{w.st.ackSlot(s, b)}, Value: w.last[s][b], From: w.servers})
	return err
}

// pushThroughRings writes the keys of each server behind each other into a ring there, as
// into a socket. The server copies them out and moves the tail.
func (w *Worker) pushThroughRings(ctx context.Context) error {
	for _, k := range w.st.keys {
		for from := k.from; from < k.to; {
			n, err := w.room(ctx, k.server)
			if err != nil {
				return err
			}
			n = min(n, k.to-from)
			head := w.sent[k.server]
			at := w.st.ringAt(k.server, w.n) + int(head%uint64(w.st.ring))
			w.sent[k.server] = head + uint64(n)
			signal := window.Signal{Slot: w.st.headSlot(w.n), Value: w.sent[k.server]}
			if err := w.st.mem.PutNotify(ctx, k.server, at, w.toSend[from:from+n], signal); err != nil {
				return err
			}
			from += n
		}
	}
	for s := range w.servers {
		if _, err := w.tail(ctx, s, w.sent[s]); err != nil {
			return err
		}
	}
	return nil
}

// room returns how many elements fit into a ring in one piece, and waits for one.
func (w *Worker) room(ctx context.Context, s int) (int, error) {
	head, ring := w.sent[s], uint64(w.st.ring)
	least := uint64(0)
	if head >= ring {
		least = head - ring + 1
	}
	tail, err := w.tail(ctx, s, least)
	return int(min(ring-(head-tail), ring-head%ring)), err
}

// tail waits until a server has copied so many elements out of the ring.
func (w *Worker) tail(ctx context.Context, s int, least uint64) (uint64, error) {
	_, tail, err := w.st.wait(ctx, window.Until{Slots: []int{w.st.tailSlot(s)}, Condition: window.AtLeast, Value: least, From: w.servers})
	return tail, err
}
