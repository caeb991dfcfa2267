//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// A tuneFeed reads the output of rank 0, and shows the progress.
type tuneFeed struct {
	news    io.Writer
	title   string
	setting *tuneSetting
	samples []sample
	trials  []trial
	shown   int // percent
	rest    []byte
	err     error
}

// Write takes the ranks' output.
func (f *tuneFeed) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	for {
		end := bytes.IndexByte(f.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		f.line(f.rest[:end])
		f.rest = f.rest[end+1:]
	}
}

// line takes one line of rank 0's output: a setting, a sample, a trial, or how much is done.
func (f *tuneFeed) line(text []byte) {
	var l tuneLine
	if err := json.Unmarshal(text, &l); err != nil {
		f.err = errors.Join(f.err, fmt.Errorf("a rank printed %q: %w", text, err))
		return
	}
	if l.Setting != nil {
		f.setting = l.Setting
	}
	if l.Sample != nil {
		f.samples = append(f.samples, *l.Sample)
	}
	if l.Trial != nil {
		f.trials = append(f.trials, *l.Trial)
	}
	if l.Done > 0 {
		f.show(int(100 * l.Done))
	}
}

// show prints the progress of the job: in place on a terminal, else when it
// begins.
func (f *tuneFeed) show(percent int) {
	switch {
	case f.onTerminal() && (percent > f.shown || percent == 0):
		fmt.Fprintf(f.news, "\rgrun: %s: %d%% ", f.title, percent)
	case percent == 0:
		fmt.Fprintf(f.news, "grun: %s\n", f.title)
	}
	f.shown = percent
}

// end ends the line of progress on a terminal.
func (f *tuneFeed) end() {
	if f.onTerminal() {
		fmt.Fprintln(f.news)
	}
}

// onTerminal reports whether news go to a terminal, where a line may be rewritten.
func (f *tuneFeed) onTerminal() bool {
	file, ok := f.news.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
