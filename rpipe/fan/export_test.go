package fan

import "github.com/gopgas/gopgas/rpipe/internal/pipe"

// Ends returns the readers' ends.
func (f *In[T]) Ends() []*pipe.Reader { return f.in.ends }

// Summary returns the words by which writers report blocks.
func (f *In[T]) Summary() *pipe.Summary { return f.in.tally }

// HasNews reports whether a Read has something to do.
func (f *In[T]) HasNews() bool { return f.in.hasNews() }

// Full returns the number of pipes that have a block and no room for it.
func (f *In[T]) Full() (n int) {
	f.in.calling.Lock()
	defer f.in.calling.Unlock()
	for i := range f.in.pipes {
		if f.in.pipes[i].full {
			n++
		}
	}
	return n
}
