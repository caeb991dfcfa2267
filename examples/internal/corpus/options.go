package corpus

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// Options holds the command line of a program that counts words.
type Options struct {
	Program string // its name
	Dir     string
	Top     int
	All     bool
	Verify  bool
	Out     io.Writer // results
	Log     io.Writer // all other output
}

// Parse returns the command line of a program of this name, or ends the program if
// the command line is wrong. The flag -verify defaults to verify.
func Parse(program string, verify bool) Options {
	o := Options{Program: program, Dir: ".", Out: os.Stdout, Log: os.Stderr}
	flag.IntVar(&o.Top, "top", 10, "print this many of the most frequent words")
	flag.BoolVar(&o.All, "all", false, "count hidden folders and binary files as well")
	flag.BoolVar(&o.Verify, "verify", verify, "count again on one rank and compare every word")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: grun -n N ./examples/%s [flags] [DIR]\n", program)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 1 || o.Top < 0 {
		flag.Usage()
		os.Exit(2)
	}
	if flag.NArg() == 1 {
		o.Dir = flag.Arg(0)
	}
	return o
}

// Folder returns the folder of the files to count.
func (o *Options) Folder() *Folder {
	return &Folder{Dir: o.Dir, All: o.All, Program: o.Program, Log: o.Log}
}
