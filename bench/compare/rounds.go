//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gopgas/gopgas/bench/peers"
)

// A turn is one run of one system, as the raw file keeps it.
type turn struct {
	Group string `json:"group"`
	work
	Round   int           `json:"round"`
	System  string        `json:"system"`
	Limit   bool          `json:"limit,omitempty"`
	Before  time.Duration `json:"before"` // one way from core to core, in nanoseconds; 0 if unknown
	After   time.Duration `json:"after"`
	Load    string        `json:"load"`
	On      string        `json:"on"` // the day and the machine
	Figures []figure      `json:"figures"`
	Error   string        `json:"error,omitempty"`
}

// comparePeers measures all groups, or reads an earlier run, and reports.
func (o *options) comparePeers(ctx context.Context, out io.Writer) error {
	if o.from != "" {
		turns, err := readTurns(o.from)
		if err != nil {
			return err
		}
		return o.report(out, turns)
	}
	dir, err := os.MkdirTemp("", "gopgas-compare")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the system's cleaning takes the rest
	if err := o.build(ctx, out, dir); err != nil {
		return err
	}
	p, err := newProbe(ctx)
	if err != nil {
		return fmt.Errorf("probe of the distance between cores: %w", err)
	}
	defer p.close() //nolint:errcheck // the echo ends with this process
	raw, done, err := o.rawFile()
	if err != nil {
		return err
	}
	defer done()
	groups := o.chosen()
	var turns []turn
	for i := range groups {
		some, err := o.rotate(ctx, out, raw, p, dir, &groups[i], o.limit(len(groups)))
		turns = append(turns, some...)
		if err != nil {
			return errors.Join(err, o.report(out, turns))
		}
	}
	return o.report(out, turns)
}

// rawFile opens the file for the figures of each turn, if there is to be one. The caller calls done at the end.
func (o *options) rawFile() (raw io.Writer, done func(), err error) {
	if o.raw == "" {
		return io.Discard, func() {}, nil
	}
	f, err := os.Create(o.raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; name another file with -raw", err)
	}
	return f, func() { f.Close() }, nil // each turn was written
}

// build makes our programs and those of the peers, and names the missing packages.
func (o *options) build(ctx context.Context, out io.Writer, dir string) error {
	if err := command(ctx, ".", "go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/grun", "./bench"); err != nil {
		return fmt.Errorf("building gopgas; run compare in its folder: %w", err)
	}
	missing, err := peers.Build(ctx, dir)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		fmt.Fprintf(out, "Some peers are missing. Install them with:\n\n    apt-get install %s\n\n", strings.Join(missing, " "))
	}
	return nil
}

// rotate has all systems of a group take turns, round by round. It begins no round that the
// limit would cut.
func (o *options) rotate(ctx context.Context, out, raw io.Writer, p *probe, dir string, g *group, limit time.Duration) ([]turn, error) {
	all := systems(dir, g)
	rounds := o.rounds
	each := g.figure(limit, len(all), rounds)
	for each == leastFigure && rounds > leastRounds/2 {
		rounds--
		each = g.figure(limit, len(all), rounds)
	}
	fmt.Fprintf(out, "%s over %s, %d ranks: %d systems, load %s, cores %v apart\n", g.name, g.Provider, g.Ranks, len(all), load(), p.distance())
	var turns []turn
	began := time.Now()
	for round := range rounds {
		if spent := time.Since(began); round > 0 && spent+spent/time.Duration(round) > limit {
			fmt.Fprintf(out, "  %d of %d rounds took the time of the group\n", round, rounds)
			break
		}
		for i := range all {
			s := &all[(i+round)%len(all)]
			t, err := takeTurn(ctx, p, g, s, round, each, limit)
			if ctx.Err() != nil {
				return turns, context.Cause(ctx)
			}
			if err != nil {
				fmt.Fprintln(out, "  "+err.Error())
				if s.name == ours && len(t.Figures) == 0 {
					return turns, err
				}
			}
			turns = append(turns, *t)
			if err := json.NewEncoder(raw).Encode(t); err != nil {
				return turns, err
			}
		}
	}
	return turns, nil
}

// takeTurn runs a system once between two measurements of the probe.
func takeTurn(ctx context.Context, p *probe, g *group, s *system, round int, each, limit time.Duration) (*turn, error) {
	t := &turn{Group: g.name, work: g.work, Round: round, System: s.name, Limit: s.limit, Load: load(), On: state(), Before: p.distance()}
	var err error
	if t.Figures, err = s.run(ctx, g, each, max(limit/4, leastTurn)); err != nil {
		t.Error = err.Error()
	}
	t.After = p.distance()
	return t, err
}

// leastTurn bounds the time of a turn from below: a busy machine starts jobs slowly.
const leastTurn = 10 * time.Second

// readTurns reads a raw file.
func readTurns(path string) (turns []turn, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := json.NewDecoder(f)
	lines.DisallowUnknownFields()
	for {
		var t turn
		switch err := lines.Decode(&t); {
		case errors.Is(err, io.EOF):
			return turns, nil
		case err != nil:
			return nil, fmt.Errorf("%s, turn %d: %w", path, len(turns)+1, err)
		}
		turns = append(turns, t)
	}
}
