package fabric

// UnderWay returns two numbers: requests that have room in this rank's completion queues and have
// not completed, and operations that were not given back.
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
