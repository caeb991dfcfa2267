package fabric

// UnderWay returns the number of requests that this rank's completion queues have room for
// and that have not completed, and the number of operations that were not given back.
func (f *Fabric) UnderWay() (requests int64, operations int) {
	for _, b := range f.bindings {
		requests += b.outstanding.Load()
		b.ops.mu.Lock()
		operations += len(b.ops.all)
		for o := b.ops.free; o != nil; o = o.next {
			operations--
		}
		b.ops.mu.Unlock()
	}
	return requests, operations
}
