package rpipe

// TryAlloc allocates a block of n elements as Alloc does, without waiting for the
// reader. ErrWouldBlock: the reader has not opened its end, or has no room for the
// block. A call that finds no room makes progress and looks again. It also tells the
// reader, once, that this end wants memory; the reader then announces what it frees
// at once. A call waits for the reader's rank at most, for a second: to connect, and
// where synchronization is immediate for what was freed. Kind: as Alloc's.
func (w *Writer[T]) TryAlloc(n int) (Block[T], error) {
	return w.alloc(w.end().Now, "TryAlloc", n)
}

// TryWrite hands a block to the reader as Write does, without waiting for the reader.
// ErrWouldBlock: as many blocks as the pipe is wide are not read yet, or the queue to
// the reader's rank is full. The block is still the writer's then. A call that finds no
// room makes progress and tells the reader, as TryAlloc does. Kind: as Write's.
func (w *Writer[T]) TryWrite(b Block[T]) error {
	return w.write(w.end().Now, "TryWrite", b)
}

// TrySend writes a copy of src: TryAlloc, copy and TryWrite in one. After ErrWouldBlock
// nothing was sent, and no block is left. Kind: as Send's.
func (w *Writer[T]) TrySend(src []T) error {
	end := w.end()
	if err := end.AwaitWidth(end.Now); err != nil { // ahead of the copy
		return end.Fail("TrySend", err)
	}
	return w.send(end.Now, src, "TryAlloc", "TryWrite")
}
