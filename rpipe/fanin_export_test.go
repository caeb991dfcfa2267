package rpipe

// Wanted is where the writer of a fan-in's pipe says that it waits.
func (f *FanIn[T]) Wanted(pipe int) []byte {
	r := f.in.ends[pipe]
	return words(r.End).Flags(r.WantedFlag())
}

// Full is how many pipes have a block for which there is no room.
func (f *FanIn[T]) Full() (n int) {
	f.in.calling.Lock()
	defer f.in.calling.Unlock()
	for i := range f.in.pipes {
		if f.in.pipes[i].full {
			n++
		}
	}
	return n
}
