package rpipe

// Wanted is where the writer of a fan-in's pipe says that it waits.
func (f *FanIn[T]) Wanted(pipe int) []byte {
	r := f.in.ends[pipe]
	return words(r.pipe).Flags(r.wantedFlag())
}
