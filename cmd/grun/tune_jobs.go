//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
)

// tune runs all jobs and saves their results.
func (o *tuneOptions) tune(out, news io.Writer) error {
	spec, err := o.start.spec()
	if err != nil {
		return err
	}
	o.onHosts(spec.Hosts)
	path, err := o.file(spec.Hosts)
	if err != nil {
		return err
	}
	table, err := o.runJobs(news)
	if err != nil {
		return err
	}
	if earlier, err := tuned.Read(path); err == nil {
		table.Keep(earlier, o.measures)
	}
	if err := table.Save(path); err != nil {
		return &codedError{launcher.ExitInternal, fmt.Errorf("save the table: %w; name another file with --output", err)}
	}
	printTable(out, table)
	fmt.Fprintf(out, "\nSaved in %s.\n", path)
	if o.output == "" {
		fmt.Fprintln(out, "Jobs that grun starts there use it from now on; GRUN_TUNED=off has one do without.")
	} else {
		fmt.Fprintf(out, "Jobs use it with GRUN_TUNED=%s.\n", path)
	}
	return nil
}

// onHosts replaces defaults by those for the named hosts: a rank for each slot, and the
// providers of an ordinary job.
func (o *tuneOptions) onHosts(list []hosts.Host) {
	if list == nil {
		o.ranks, o.providers = orList(o.ranks, 2, 4, 8), orList(o.providers, "shm", "tcp")
		return
	}
	o.ranks, o.providers = orList(o.ranks, hosts.Slots(list)), orList(o.providers, "auto")
}

// orList returns list, or byDefault where it is empty.
func orList[T any](list []T, byDefault ...T) []T {
	if len(list) > 0 {
		return list
	}
	return byDefault
}

// runJobs measures with each provider and number of ranks.
func (o *tuneOptions) runJobs(news io.Writer) (*tuned.Table, error) {
	signals, stop := catchSignals()
	defer stop()
	table := &tuned.Table{}
	share := o.time / time.Duration(len(o.providers)*len(o.ranks))
	for _, provider := range o.providers {
		for _, n := range o.ranks {
			j := &tuneJob{tuneOptions: o, provider: provider, n: n, news: news, signals: signals}
			m, err := j.run(share)
			if err != nil {
				return nil, err
			}
			m.addTo(table)
		}
	}
	return table, nil
}

// A tuneJob measures with a provider and a number of ranks, in two jobs.
type tuneJob struct {
	*tuneOptions
	provider string
	n        int
	news     io.Writer
	signals  chan os.Signal
}

// run measures all algorithms, and then checks those that seem faster than the built-in
// choice. The check is a job of its own: the places of processes on cores and of their
// memory differ from job to job, and speed with them.
func (j *tuneJob) run(share time.Duration) (*tuneResult, error) {
	about := fmt.Sprintf("%s, %d ranks", j.provider, j.n)
	measured := &tuneFeed{news: j.news, title: "measuring " + about}
	if err := j.launch(measured, share*3/5); err != nil {
		return nil, fmt.Errorf("%s: %w", about, err)
	}
	if measured.setting == nil {
		return nil, &codedError{launcher.ExitInternal, fmt.Errorf("%s: no rank measured anything", about)}
	}
	result := &tuneResult{tuneSetting: *measured.setting}
	rivals := rivalsOf(measured.samples)
	if len(rivals) == 0 {
		return result, nil
	}
	checked := &tuneFeed{news: j.news, title: fmt.Sprintf("checking what seems faster: %s, %d of %d", about, len(rivals), casesOf(measured.samples))}
	if err := j.launch(checked, share*2/5, "--"+checkFlag, strings.Join(rivals, ",")); err != nil {
		return nil, fmt.Errorf("%s: %w", about, err)
	}
	if checked.setting == nil || checked.setting.Setting != result.Setting {
		return nil, &codedError{launcher.ExitInternal, fmt.Errorf("%s: two jobs had different places; does another program use the hosts?", about)}
	}
	result.rules = rulesOf(measured.samples, checked.trials)
	return result, nil
}

// longTune is the extra time after which grun counts a job as stuck.
const longTune = 2 * time.Minute

// launch starts this executable as the ranks of a job.
func (j *tuneJob) launch(feed *tuneFeed, during time.Duration, more ...string) error {
	self, err := os.Executable()
	if err != nil {
		return &codedError{launcher.ExitInternal, err}
	}
	j.start.provider = j.provider
	spec, err := j.start.spec()
	if err != nil {
		return err
	}
	args := append([]string{"tune", "--" + asRankFlag, "--time", during.String(), "--max", j.largest}, more...)
	if len(j.only) > 0 {
		args = append(args, "--only", strings.Join(j.only, ","))
	}
	spec.Programs = []launcher.Program{{Path: self, Args: args, N: j.n, Stage: true}}
	spec.Env = append(spec.Env, tuned.Env+"="+tuned.Off, tuned.EnvExplain+"=", tuned.EnvWays+"=", bootstrap.EnvHosts+"=", bootstrap.EnvVerbose+"=0")
	spec.Stdout, spec.Stderr, spec.StdinTo = feed, os.Stderr, launcher.StdinNone
	spec.Signals, spec.Guardian, spec.Timeout = j.signals, true, 3*during+longTune
	feed.show(0)
	result, err := launcher.Run(context.Background(), spec)
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

// A tuneResult holds the rules of one setting.
type tuneResult struct {
	tuneSetting
	rules []tuned.Rule
}

// addTo adds the setting to a table, which may have it: two providers may be the same way.
func (r *tuneResult) addTo(t *tuned.Table) {
	for _, m := range r.Machines {
		if !slices.Contains(t.Machines, m) {
			t.Machines = append(t.Machines, m)
		}
	}
	if _, found := t.For(r.Setting); !found {
		t.Settings = append(t.Settings, tuned.Measured{Setting: r.Setting, Rules: r.rules})
	}
}

// file returns the path of the table.
func (o *tuneOptions) file(list []hosts.Host) (string, error) {
	if o.output != "" {
		return o.output, nil
	}
	return tableFile(list)
}
