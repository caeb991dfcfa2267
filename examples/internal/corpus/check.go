package corpus

import (
	"context"
	"fmt"
)

// shownDifferences bounds the number of wrong counts that are printed.
const shownDifferences = 10

// A Check compares counts with those of a sequential count.
type Check struct {
	folder      *Folder
	want        Counts // counts that were not compared yet
	files       int
	words       int
	occurrences int64
	wrong       int
}

// Recount counts all files again, one after another.
func (f *Folder) Recount(ctx context.Context, files []string) (*Check, error) {
	want := Counts{}
	if err := f.Count(ctx, want, files, false); err != nil {
		return nil, err
	}
	return f.Against(want, len(files)), nil
}

// Against makes a check of the counts of some files; want has the right ones. The
// check removes entries from want.
func (f *Folder) Against(want Counts, files int) *Check {
	return &Check{folder: f, want: want, files: files, words: len(want), occurrences: want.Total()}
}

// Word compares a word's count. Call it once for each word.
func (c *Check) Word(word string, n uint64) {
	var want uint64
	if w := c.want[word]; w != nil {
		want = *w
	}
	if n != want {
		c.differs(word, n, want)
	}
	delete(c.want, word)
}

// differs counts a word with a wrong number, and prints the first few.
func (c *Check) differs(word string, counted, want uint64) {
	if c.wrong++; c.wrong <= shownDifferences {
		fmt.Fprintf(c.folder.Log, "%s: %.40q: counted %d times, %d times in the files\n", c.folder.Program, word, counted, want)
	}
}

// Done reports that all words were right, or returns an error.
func (c *Check) Done() error {
	for word, n := range c.want {
		c.differs(word, 0, *n)
	}
	if c.wrong > 0 {
		return fmt.Errorf("%d words differ from a sequential count of %d words; did a file change meanwhile?", c.wrong, c.words)
	}
	fmt.Fprintf(c.folder.Log, "%s: verified: all %d words, %d occurrences, in %d files\n", c.folder.Program, c.words, c.occurrences, c.files)
	return nil
}
