// Pipes counts the words of all files below a folder on many ranks, as wordcount
// does, but by messages. Each rank sends its counts to the ranks that add them up.
//
//	grun -n 4 ./examples/pipes [-verify=false] [-top 10] [-all] [DIR]
//
//	rank 0: counts files --+--> [pipe] --> fan-in: adds up words of hash 0 --+
//	                       |                                                 |
//	rank 1: counts files --+--> [pipe] --> fan-in: adds up words of hash 1 --+
//	        ...                            ...                               |
//	                           rank 0: fan-in: the result, checked <---------+
//
// Every rank counts and every rank adds up, at the same time. A rank that counts
// writes words straight into the memory of the rank that adds them up, if that is
// mapped. It waits if that rank is behind; no rank sends a request.
//
//	corpus      the command line, the files, their words, and a sequential count (examples/internal/corpus)
//	stream.go   words and counts through a pipe
//	reduce.go   which rank sends what to which
//	report.go   rank 0 prints the most frequent words and checks all of them
package main

import (
	"context"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/runtime"
)

// options holds the command line.
type options struct{ corpus.Options }

func main() {
	o := options{corpus.Parse("pipes", true)}
	runtime.Main(o.run)
}

// run runs at each rank.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	files, err := o.Folder().List(world.Rank() == 0)
	if err != nil {
		return err
	}
	mine, err := o.reduce(ctx, world, files)
	if err != nil {
		return err
	}
	job.Note("words added up", int64(len(mine)))
	all, err := gather(ctx, world, mine)
	if err != nil || world.Rank() != 0 {
		return err
	}
	o.print(all)
	if !o.Verify {
		return nil
	}
	return o.check(ctx, all, files)
}
