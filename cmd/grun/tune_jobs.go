package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/launcher"
)

// tune runs all jobs and saves their results.
func (o *tuneOptions) tune(out, news io.Writer) error {
	path, err := o.file()
	if err != nil {
		return err
	}
	table := &tuned.Table{}
	if table.Machine, err = tuned.Here(); err != nil {
		return err
	}
	samples, err := o.runJobs(news)
	if err != nil {
		return err
	}
	if table.Rules = rulesOf(samples); len(table.Rules) == 0 {
		return &codedError{launcher.ExitInternal, errors.New("no rank measured anything")}
	}
	if err := table.Save(path); err != nil {
		return &codedError{launcher.ExitInternal, fmt.Errorf("save the table: %w; name another file with --output", err)}
	}
	fmt.Fprintln(out, "Other than the built-in choice:")
	printRules(out, table.Rules, func(r tuned.Rule) bool { return r.Instead != "" })
	fmt.Fprintf(out, "\nSaved in %s.\n", path)
	if o.output == "" {
		fmt.Fprintln(out, "Jobs that grun starts use it from now on; GRUN_TUNED=off has one do without.")
	} else {
		fmt.Fprintf(out, "Jobs use it with GRUN_TUNED=%s.\n", path)
	}
	return nil
}

// runJobs measures with each provider and number of ranks.
func (o *tuneOptions) runJobs(news io.Writer) ([]sample, error) {
	signals, stop := catchSignals()
	defer stop()
	var samples []sample
	jobs := len(o.providers) * len(o.ranks)
	for _, provider := range o.providers {
		for _, n := range o.ranks {
			feed := &tuneFeed{news: news, title: fmt.Sprintf("%s, %d ranks", provider, n)}
			if err := o.runJob(provider, n, o.time/time.Duration(jobs), feed, signals); err != nil {
				return nil, fmt.Errorf("%s: %w", feed.title, err)
			}
			samples = append(samples, feed.samples...)
		}
	}
	return samples, nil
}

// longTune is the extra time after which grun counts a job as stuck.
const longTune = 2 * time.Minute

// runJob starts this executable as the ranks of a job.
func (o *tuneOptions) runJob(provider string, n int, during time.Duration, feed *tuneFeed, signals chan os.Signal) error {
	self, err := os.Executable()
	if err != nil {
		return &codedError{launcher.ExitInternal, err}
	}
	args := []string{"tune", "--" + asRankFlag, "--ranks", strconv.Itoa(n), "--provider", provider, "--time", during.String(), "--max", o.largest}
	if len(o.only) > 0 {
		args = append(args, "--only", strings.Join(o.only, ","))
	}
	feed.show(0)
	result, err := launcher.Run(context.Background(), launcher.Spec{
		Programs: []launcher.Program{{Path: self, Args: args, N: n}},
		Env:      []string{bootstrap.EnvProvider + "=" + provider, tuned.Env + "=" + tuned.Off, tuned.EnvExplain + "=", tuned.EnvWays + "=", bootstrap.EnvHosts + "="},
		Stdout:   feed, Stderr: os.Stderr, StdinTo: launcher.StdinNone,
		Signals: signals, Guardian: true, Timeout: 3*during + longTune,
	})
	feed.end()
	switch {
	case err != nil:
		return &codedError{result.ExitCode, err}
	case result.TimedOut:
		return &codedError{result.ExitCode, errors.New("it took far longer than --time; is the machine busy?")}
	case result.ExitCode != 0:
		return &codedError{result.ExitCode, errors.New(result.Summary())}
	}
	return feed.err
}

// A tuneFeed reads the output of rank 0, and shows the progress.
type tuneFeed struct {
	news    io.Writer
	title   string
	samples []sample
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

func (f *tuneFeed) line(text []byte) {
	var l tuneLine
	if err := json.Unmarshal(text, &l); err != nil {
		f.err = errors.Join(f.err, fmt.Errorf("a rank printed %q: %w", text, err))
		return
	}
	if l.Sample != nil {
		f.samples = append(f.samples, *l.Sample)
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
		fmt.Fprintf(f.news, "\rgrun: measuring %s: %d%% ", f.title, percent)
	case percent == 0:
		fmt.Fprintf(f.news, "grun: measuring %s\n", f.title)
	}
	f.shown = percent
}

func (f *tuneFeed) end() {
	if f.onTerminal() {
		fmt.Fprintln(f.news)
	}
}

func (f *tuneFeed) onTerminal() bool {
	file, ok := f.news.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
