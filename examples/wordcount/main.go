// Wordcount counts the words of all files below a folder on many ranks, with
// one-sided operations only, and prints the most frequent ones.
//
//	grun -n 4 ./examples/wordcount [-verify] [-top 10] [-all] [DIR]
//
// A word is a run of ASCII letters, in lower case, and ends where its file
// ends: for each file, the counts are those of
//
//	tr -cs A-Za-z '\n' < FILE | tr A-Z a-z | sort | uniq -c
//
// Without -all it skips hidden folders, such as .git, and files that are no text: they have a NUL
// byte among their first 8000. It does not follow links.
//
// # How it works
//
//	corpus     every rank lists the files (examples/internal/corpus)
//	claim.go   ranks claim files: FetchAdd on a counter at rank 0
//	corpus     each counts the words of its files in a Go map
//	plan.go    ranks agree how large the table must be
//	table.go   a hash table distributed over the ranks takes one update per word and rank
//	top.go     each rank hands rank 0 its most frequent words
//	verify.go  rank 0 counts everything again, alone, and compares every word
//
// No rank ever sends another one a request: all of them work on memory.
package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct{ corpus.Options }

func main() {
	o := options{corpus.Parse("wordcount", false)}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	files, err := o.Folder().List(job.World().Rank() == 0)
	if err != nil {
		return err
	}
	words, err := o.countClaimed(ctx, job, files)
	if err != nil {
		return err
	}
	table, err := merge(ctx, job.World(), words)
	if err != nil {
		return err
	}
	if err := o.report(ctx, job, table, files); err != nil {
		return err
	}
	return table.Free(ctx)
}

// countClaimed counts the files that this rank claims.
func (o *options) countClaimed(ctx context.Context, job *runtime.Job, files []string) (corpus.Counts, error) {
	c, err := newClaims(ctx, job.World(), files)
	if err != nil {
		return nil, err
	}
	if job.World().Rank() == 0 {
		defer o.showProgress(ctx, c)()
	}
	words := corpus.Counts{}
	for {
		mine, err := c.take(ctx)
		if err != nil {
			return nil, err
		}
		if len(mine) == 0 {
			break
		}
		job.Note("files claimed", int64(len(mine)))
		if err := o.Folder().Count(ctx, words, mine, true); err != nil {
			return nil, err
		}
	}
	job.Note("words", words.Total())
	return words, c.free(ctx)
}

// merge adds every rank's words to one table.
func merge(ctx context.Context, team *runtime.Team, words corpus.Counts) (*Table, error) {
	plan := NewPlan(team.Size())
	for w := range words {
		plan.Add(w)
	}
	table, err := NewTable(ctx, team, plan)
	if err != nil {
		return nil, err
	}
	for w, n := range words {
		if err := table.Add(ctx, w, *n); err != nil {
			return nil, err
		}
	}
	return table, table.Fence(ctx)
}

// report prints the most frequent words at rank 0.
func (o *options) report(ctx context.Context, job *runtime.Job, table *Table, files []string) error {
	best, err := table.Top(ctx, o.Top)
	if err != nil || job.World().Rank() != 0 {
		return err
	}
	for _, e := range best {
		fmt.Fprintln(o.Out, e.Count, e.Word)
	}
	if !o.Verify {
		return nil
	}
	check, err := o.Folder().Recount(ctx, files)
	if err != nil {
		return err
	}
	return verify(ctx, table, check)
}
