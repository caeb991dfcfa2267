package rpipe

// Arrivals returns a channel for select beside other channels. A value says that
// something has arrived since the last value was sent and something was read. So one call
// of TryRead after each value loses nothing:
//
//	arrivals := r.Arrivals()
//	for {
//		select {
//		case <-arrivals:
//			b, err := r.TryRead() // ErrWouldBlock: nothing; io.EOF: the end
//			...
//		case <-other:
//		}
//	}
//
// Reading more than one block after a value is fine, too; then some value may
// find nothing. The next value comes after a call that reads. When
// nothing will arrive any more, the channel is closed: TryRead returns what there
// is, then io.EOF or the error. Close, and the end of the job, close it as well.
//
// The first call has a goroutine wait for this reader. Without one nothing is
// spent on this. A writer that was opened with other options and sends nothing is
// not noticed here, but by Read and TryRead. Kind: local, the first call sends a request to the
// writer's rank.
func (r *Reader[T]) Arrivals() <-chan struct{} { return r.end().Arrivals() }
