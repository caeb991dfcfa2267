// Package tuned is the table in which grun tune keeps what it measured: by
// which algorithm a machine does which collective call best. Later jobs on the
// same machine choose by it.
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
// A rule says which algorithm is best for a collective on a path between so many
// members, up to a size in bytes of the call's longest buffer; without a size it
// is for all that are longer. It was measured, beside what would have been
// chosen without it. Rules of one collective, path and number of members stand in
// the order of their sizes, and the last one has none.
//
// A path is how members reach each other: "mapped", or a provider's name where
// messages are queued. All of them are on the machine that was measured: a table
// says nothing about teams on several hosts.
//
// Files come from outside: whatever they hold, Load returns a table that is
// consistent, or an error that says what to do.
package tuned

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Env names the file of a job's table; "off" has it do without.
const (
	Env = "GRUN_TUNED"
	Off = "off"
)

// Mapped is the path of members that map each other's memory.
const Mapped = "mapped"

// What is wrong with a table; match with errors.Is.
var (
	// ErrDamaged: not a table, or not one of this version.
	ErrDamaged = errors.New("not a table of this version; measure again with: grun tune")
	// ErrForeign: a table that was measured elsewhere.
	ErrForeign = errors.New("measured on another machine; measure this one with: grun tune")
)

// version changes with the meaning of a table.
const version = 1

// Bounds of what a table may hold.
const (
	maxBytes   = 1 << 20
	maxRules   = 4096
	maxMembers = 1 << 20
	maxName    = 64
)

// A Table is what was measured on a machine.
type Table struct {
	Machine Machine
	Rules   []Rule
}

// A Rule says by which algorithm a collective is done best.
type Rule struct {
	Collective string `json:"collective"`
	Path       string `json:"path"`
	Members    int    `json:"members"`
	UpTo       int    `json:"upTo,omitempty"` // bytes; 0: any size
	Algorithm  string `json:"algorithm"`
	// What a call took, at the largest size that was measured for the rule, and
	// what it took in the way that is chosen without it.
	Micros        float64 `json:"micros"`
	Instead       string  `json:"instead,omitempty"`
	InsteadMicros float64 `json:"insteadMicros,omitempty"`
}

// file is a table as it is stored.
type file struct {
	Version int     `json:"version"`
	Machine Machine `json:"machine"`
	Rules   []Rule  `json:"rules"`
}

// Encode returns a table's bytes. A table that Decode would refuse is an error.
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

// Decode reads a table. What is no table is ErrDamaged.
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

// check finds what makes a table unusable.
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
	case !(r.Micros >= 0 && r.InsteadMicros >= 0) || math.IsInf(r.Micros+r.InsteadMicros, 1): // NaN is not, either
		return "a time that cannot be"
	}
	return ""
}

// A subject is what rules in the order of sizes are for.
type subject struct {
	collective, path string
	members          int
}

// checkOrder finds rules that could never apply, and sizes without a rule.
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

// For returns the rules for n members on a path: those that were measured with the
// least number of members that is not less, collective by collective. Beyond what
// was measured there are none.
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
