// Pipes counts the words of all files below a folder on many ranks, as wordcount
// does, but by messages: each rank sends what it has counted to the ranks that add
// it up.
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
// writes words straight into memory at the rank that adds them up, where mapped,
// and waits when that one is behind; nobody asks for anything.
//
//	corpus      the files, their words, and a sequential count (examples/internal/corpus)
//	stream.go   words and counts through a pipe
//	reduce.go   who sends what to whom
//	report.go   rank 0 prints the most frequent words and checks all of them
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/gopgas/gopgas/examples/internal/corpus"
	"github.com/gopgas/gopgas/runtime"
)

// options are the command line.
type options struct {
	dir    string
	top    int
	all    bool
	verify bool
	out    io.Writer // results
	log    io.Writer // everything else
}

func main() {
	o := options{dir: ".", out: os.Stdout, log: os.Stderr}
	flag.IntVar(&o.top, "top", 10, "print this many of the most frequent words")
	flag.BoolVar(&o.all, "all", false, "count hidden folders and binary files as well")
	flag.BoolVar(&o.verify, "verify", true, "count again on one rank and compare every word")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: grun -n N ./examples/pipes [flags] [DIR]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 || o.top < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if flag.NArg() == 1 {
		o.dir = flag.Arg(0)
	}
	runtime.Main(o.run)
}

func (o *options) folder() *corpus.Folder {
	return &corpus.Folder{Dir: o.dir, All: o.all, Program: "pipes", Log: o.log}
}

// run is what each rank does.
func (o *options) run(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	files, err := o.folder().List(world.Rank() == 0)
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
	if !o.verify {
		return nil
	}
	return o.check(ctx, all, files)
}
