//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A version holds the programs of one version: grun and bench.
type version struct{ dir string }

// build returns the version of a name: a folder that holds the programs, or a commit, which
// it builds in dir.
func build(ctx context.Context, name, dir string) (version, error) {
	if info, err := os.Stat(filepath.Join(name, "grun")); err == nil && !info.IsDir() {
		return version{name}, nil
	}
	tree := dir + "-tree"
	if err := command(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", tree, name); err != nil {
		return version{}, fmt.Errorf("%s is neither a commit nor a folder with grun and bench: %w", name, err)
	}
	defer command(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", tree) //nolint:errcheck // git prunes it later
	if err := command(ctx, tree, "go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/grun", "./bench"); err != nil {
		return version{}, fmt.Errorf("building %s: %w", name, err)
	}
	return version{dir}, nil
}

// command runs a program in a folder. Its error holds the program's output.
func command(ctx context.Context, dir, name string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// A result is a line of bench's output.
type result struct {
	Benchmark string
	Size      int
	Unit      string
	Median    float64
}

// cost returns a number that grows as the result gets worse.
func (r result) cost() float64 {
	if r.Unit == "us" {
		return r.Median
	}
	return 1 / r.Median
}

// run runs the benchmarks in one job.
func (v version) run(ctx context.Context, o *options, provider string) ([]result, error) {
	args := []string{"-n", "2", "--bind-to", "core", "--provider", provider, filepath.Join(v.dir, "bench"), "-json",
		"-size", o.sizes, "-time", o.time.String()}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(v.dir, "grun"), append(args, o.benchmarks...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", v.dir, err, bytes.TrimSpace(said.Bytes()))
	}
	return read(&out)
}

// read returns the results of benchmarks, without those of their floors.
func read(r io.Reader) (results []result, err error) {
	lines := json.NewDecoder(r)
	for {
		var one result
		switch err := lines.Decode(&one); {
		case errors.Is(err, io.EOF):
			return results, nil
		case err != nil:
			return nil, fmt.Errorf("output of bench: %w", err)
		case !strings.HasSuffix(one.Benchmark, "_floor") && one.Median > 0:
			results = append(results, one)
		}
	}
}
