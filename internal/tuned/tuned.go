// Package tuned defines the table of grun tune's measurements: the best algorithm
// of a machine for each collective call. Later jobs on the same machine choose by
// it.
//
//	grun tune  -- Save -->  <cache>/grun/tuned/<machine>.json  -- grun -->  GRUN_TUNED=<file>  -- Load -->  collectives
//
// A table is JSON:
//
//	{
//	  "version": 1,
//	  "machine": {"cpu": "...", "cores": 2, "arch": "amd64"},
//	  "rules": [
//	    {"collective": "all-reduce", "path": "tcp", "members": 4, "upTo": 16384, "algorithm": "ring", "micros": 81.5, "instead": "linear", "insteadMicros": 97.2},
//	    {"collective": "all-reduce", "path": "tcp", "members": 4, "algorithm": "rabenseifner", ...}
//	  ]
//	}
//
// A rule names the best algorithm for a collective on a path between so many
// members. It holds up to a size in bytes of the call's longest buffer. A rule
// without a size holds for all longer buffers. It has the measured time, and that
// of the built-in choice. Rules of one collective, path and number of members are
// sorted by size; the last one has no size.
//
// A path is the way that members reach each other: "mapped", or a provider's name
// where messages are queued. All members are on the measured machine: a table
// does not hold for teams on several hosts.
//
// Files come from outside. For any content, Load returns a consistent table or an
// error with a remedy.
package tuned

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// The environment by which collectives choose.
const (
	// Env names the file of a job's table. With Off the job uses none.
	Env = "GRUN_TUNED"
	Off = "off"
	// EnvWays is "messages" for a job whose collective calls use no mapped memory.
	EnvWays = "GRUN_COLLECTIVES"
	// EnvExplain is "collectives" for a job whose rank 0 prints the algorithm of each call.
	EnvExplain = "GRUN_EXPLAIN"
)

// Mapped is the path of members that map each other's memory.
const Mapped = "mapped"

// Errors of tables; match with errors.Is.
var (
	// ErrDamaged: the file is not a table, or not one of this version.
	ErrDamaged = errors.New("not a table of this version; measure again with: grun tune")
	// ErrForeign: the table was measured on another machine.
	ErrForeign = errors.New("measured on another machine; measure this one with: grun tune")
)

// version changes with the format's meaning.
const version = 1

// Bounds of a table's content.
const (
	maxBytes   = 1 << 20
	maxRules   = 4096
	maxMembers = 1 << 20
	maxName    = 64
)

// A Table holds the measurements of a machine.
type Table struct {
	Machine Machine
	Rules   []Rule
}

// A Rule names the best algorithm for a collective.
type Rule struct {
	Collective string `json:"collective"`
	Path       string `json:"path"`
	Members    int    `json:"members"`
	UpTo       int    `json:"upTo,omitempty"` // bytes; 0: any size
	Algorithm  string `json:"algorithm"`
	// Micros is the time of a call by Algorithm, at the largest size measured for
	// the rule; InsteadMicros is the time by the built-in choice Instead.
	Micros        float64 `json:"micros"`
	Instead       string  `json:"instead,omitempty"`
	InsteadMicros float64 `json:"insteadMicros,omitempty"`
}

// file is the stored form of a table.
type file struct {
	Version int     `json:"version"`
	Machine Machine `json:"machine"`
	Rules   []Rule  `json:"rules"`
}

// Encode returns a table's bytes. It returns an error for a table that Decode
// would refuse.
func (t *Table) Encode() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(file{version, t.Machine, t.Rules}, "", "  ")
	if len(data) >= maxBytes {
		return nil, fmt.Errorf("%d bytes, more than %d: %w", len(data), maxBytes, ErrDamaged)
	}
	return append(data, '\n'), err
}

// Decode reads a table. It returns ErrDamaged if data is no table.
func Decode(data []byte) (*Table, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%d bytes, more than %d: %w", len(data), maxBytes, ErrDamaged)
	}
	var f file
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is something behind the table: %w", ErrDamaged)
	}
	if f.Version != version {
		return nil, fmt.Errorf("version %d, want %d: %w", f.Version, version, ErrDamaged)
	}
	t := &Table{f.Machine, f.Rules}
	return t, t.check()
}

// check returns an error if the table cannot be used.
func (t *Table) check() error {
	if len(t.Rules) > maxRules {
		return fmt.Errorf("%d rules, more than %d: %w", len(t.Rules), maxRules, ErrDamaged)
	}
	for i := range t.Rules {
		if why := t.Rules[i].flaw(); why != "" {
			return fmt.Errorf("rule %d: %s: %w", i+1, why, ErrDamaged)
		}
	}
	return t.checkOrder()
}

func (r *Rule) flaw() string {
	for _, name := range []string{r.Collective, r.Path, r.Algorithm} {
		if name == "" || len(name) > maxName {
			return fmt.Sprintf("a name of %d bytes", len(name))
		}
	}
	switch {
	case r.Members < 2 || r.Members > maxMembers:
		return fmt.Sprintf("%d members", r.Members)
	case r.UpTo < 0:
		return fmt.Sprintf("up to %d bytes", r.UpTo)
	case !(r.Micros >= 0 && r.InsteadMicros >= 0) || math.IsInf(r.Micros+r.InsteadMicros, 1): // NaN fails, too
		return "a time that cannot be"
	}
	return ""
}

// A subject is the collective, path and number of members that rules sorted by
// size share.
type subject struct {
	collective, path string
	members          int
}

// checkOrder refuses rules that could never apply, and sizes without a rule.
func (t *Table) checkOrder() error {
	last := map[subject]int{}
	for i, r := range t.Rules {
		about := subject{r.Collective, r.Path, r.Members}
		before, found := last[about]
		if found && (before == 0 || r.UpTo != 0 && r.UpTo <= before) {
			return fmt.Errorf("rule %d comes behind one that is for the same sizes: %w", i+1, ErrDamaged)
		}
		last[about] = r.UpTo
	}
	for about, upTo := range last {
		if upTo != 0 {
			return fmt.Errorf("no rule for %s of more than %d bytes on %s between %d: %w",
				about.collective, upTo, about.path, about.members, ErrDamaged)
		}
	}
	return nil
}

// For returns the rules for n members on a path. For each collective they are
// those of the least measured number of members that is not less than n. If n is
// larger than all of those it returns none.
func (t *Table) For(path string, n int) []Rule {
	nearest := map[string]int{}
	for _, r := range t.Rules {
		if r.Path == path && r.Members >= n && (nearest[r.Collective] == 0 || r.Members < nearest[r.Collective]) {
			nearest[r.Collective] = r.Members
		}
	}
	var rules []Rule
	for _, r := range t.Rules {
		if r.Path == path && r.Members == nearest[r.Collective] {
			rules = append(rules, r)
		}
	}
	return rules
}
