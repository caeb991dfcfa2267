package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// print prints the most frequent words; equally frequent ones in the order of the
// alphabet.
func (o *options) print(all counts) {
	words := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b))
	})
	for _, w := range words[:min(o.Top, len(words))] {
		fmt.Fprintln(o.Out, all[w], w)
	}
}

// check compares every word with a sequential count.
func (o *options) check(ctx context.Context, all counts, files []string) error {
	check, err := o.Folder().Recount(ctx, files)
	if err != nil {
		return err
	}
	for word, n := range all {
		check.Word(word, n)
	}
	return check.Done()
}
