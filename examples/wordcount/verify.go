package main

import (
	"context"

	"github.com/gopgas/gopgas/examples/internal/corpus"
)

// verify compares every word of the table with a sequential count. Kind:
// one-sided.
func verify(ctx context.Context, t *Table, check *corpus.Check) error {
	for owner := range t.team.Size() {
		p, err := t.fetch(ctx, owner)
		if err != nil {
			return err
		}
		for _, e := range p.entries() {
			check.Word(e.Word, e.Count)
		}
	}
	return check.Done()
}
