package main

import (
	"context"
	"fmt"
)

// shownDifferences bounds what is printed of a table that is wrong.
const shownDifferences = 10

// verifyAll counts all files again, one after the other, and compares every
// word with the table. Kind: one-sided.
func (o *options) verifyAll(ctx context.Context, t *Table, files []string) error {
	want := tally{}
	if err := o.countFiles(ctx, want, files, false); err != nil {
		return err
	}
	words, occurrences := len(want), want.total()
	wrong, err := o.compare(ctx, t, want)
	if err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d words differ from a sequential count of %d words; did a file change meanwhile?", wrong, words)
	}
	fmt.Fprintf(o.log, "wordcount: verified: all %d words, %d occurrences, in %d files\n", words, occurrences, len(files))
	return nil
}

// compare takes from want what the table holds and returns how many words
// differ.
func (o *options) compare(ctx context.Context, t *Table, want tally) (wrong int, err error) {
	differs := func(word string, table, recount uint64) {
		if wrong++; wrong <= shownDifferences {
			fmt.Fprintf(o.log, "wordcount: %.40q: %d in the table, %d in the files\n", word, table, recount)
		}
	}
	for owner := range t.team.Size() {
		p, err := t.fetch(ctx, owner)
		if err != nil {
			return wrong, err
		}
		for _, e := range p.entries() {
			var n uint64
			if c := want[e.Word]; c != nil {
				n = *c
			}
			if n != e.Count {
				differs(e.Word, e.Count, n)
			}
			delete(want, e.Word)
		}
	}
	for word, n := range want {
		differs(word, 0, *n)
	}
	return wrong, nil
}
