package fan

import "github.com/gopgas/gopgas/rpipe/internal/pipe"

// Ends returns the readers' ends.
func (f *In[T]) Ends() (ends []*pipe.Reader) {
	for i := range f.in.pipes {
		ends = append(ends, f.in.pipes[i].Reader)
	}
	return ends
}

// Ends returns the writers' ends.
func (f *Out[T]) Ends() (ends []*pipe.Writer) {
	for _, p := range f.out.pipes {
		ends = append(ends, p.Writer)
	}
	return ends
}

// Summary returns the words by which writers tell of blocks.
func (f *In[T]) Summary() *pipe.Summary { return f.in.summary }

// HasNews reports whether a Read has something to do.
func (f *In[T]) HasNews() bool { return f.in.hasNews() }

// Blocked returns the number of pipes that have a block and no room for it.
func (f *In[T]) Blocked() (n int) {
	f.in.reading.Lock()
	defer f.in.reading.Unlock()
	for i := range f.in.pipes {
		if f.in.pipes[i].AwaitsRoom() {
			n++
		}
	}
	return n
}
