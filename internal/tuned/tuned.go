// Package tuned defines the table of grun tune's measurements: the algorithms that
// were faster than the built-in choice, for each collective call. Later jobs on the
// same hosts choose by it.
//
//	grun tune  -- Save -->  <cache>/grun/tuned/<hosts>.json  -- grun -->  GRUN_TUNED=<file>  -- Load -->  collectives
//
// A table is JSON:
//
//	{
//	  "version": 2,
//	  "machines": [{"cpu": "...", "cores": 2, "arch": "amd64"}],
//	  "settings": [
//	    {
//	      "path": "shm+tcp", "hosts": "2+1+3", "perCore": 2,
//	      "rules": [
//	        {"collective": "scan", "from": 8, "upTo": 4096, "algorithm": "linear", "micros": 15.1, "instead": "two-level", "insteadMicros": 46},
//	        ...
//	      ]
//	    }
//	  ]
//	}
//
// A [Setting] says which teams were measured, and its rules hold for such teams only. A Rule names
// the algorithm for a collective between two sizes, in bytes of the call's longest buffer. The
// command grun tune compared it with the built-in choice at both sizes and between them, and found
// it faster. It has both times, at the larger size. Sizes and collectives without a rule keep the
// built-in choice. Rules of one collective are sorted by size.
//
// The ranks of other hosts may lack the file. So grun gives them its content in
// GRUN_TUNED_TABLE ([Pack]).
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
	"slices"
)

// The environment by which collectives choose.
const (
	// Env names the file of a job's table. With Off the job uses none.
	Env = "GRUN_TUNED"
	Off = "off"
	// EnvTable has the content of that file, for ranks that may lack it.
	EnvTable = "GRUN_TUNED_TABLE"
	// EnvWays is "messages" for a job whose collective calls use no mapped memory.
	EnvWays = "GRUN_COLLECTIVES"
	// EnvExplain is "collectives" for a job whose rank 0 prints the algorithm of each call.
	EnvExplain = "GRUN_EXPLAIN"
)

// Errors of tables; match with errors.Is.
var (
	// ErrDamaged: the file is not a table, or not one of this version.
	ErrDamaged = errors.New("not a table of this version; measure again with: grun tune")
	// ErrForeign: the table was measured on other machines.
	ErrForeign = errors.New("measured on another machine; measure this one with: grun tune")
)

// version changes with the format's meaning.
const version = 2

// Bounds of a table's content.
const (
	maxBytes    = 1 << 20
	maxRules    = 4096
	maxSettings = 256
	maxMachines = 1024
	maxMembers  = 1 << 20
	maxName     = 64
	maxLayout   = 4096 // bytes

	// keptBytes bounds a table with earlier measurements. Packed, they fit in maxPacked.
	keptBytes = 256 << 10
)

// A Table holds the measurements on some hosts.
type Table struct {
	Machines []Machine // of the hosts, each kind once
	Settings []Measured
}

// A Measured setting has the rules that its measurement gave: none for collectives whose
// built-in choice stays.
type Measured struct {
	Setting
	Rules []Rule `json:"rules"`
}

// A Rule names the best algorithm for a collective.
type Rule struct {
	Collective string `json:"collective"`
	From       int    `json:"from"` // bytes
	UpTo       int    `json:"upTo"` // bytes
	Algorithm  string `json:"algorithm"`
	// Micros is the time of a call by Algorithm, of UpTo bytes; InsteadMicros is the
	// time by the built-in choice Instead.
	Micros        float64 `json:"micros"`
	Instead       string  `json:"instead"`
	InsteadMicros float64 `json:"insteadMicros"`
}

// file is the stored form of a table.
type file struct {
	Version  int        `json:"version"`
	Machines []Machine  `json:"machines"`
	Settings []Measured `json:"settings"`
}

// Encode returns a table's bytes. It returns an error for a table that Decode
// would refuse.
func (t *Table) Encode() ([]byte, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(file{version, t.Machines, t.Settings}, "", "  ")
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
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &v) == nil && v.Version != version {
		return nil, fmt.Errorf("version %d, want %d: %w", v.Version, version, ErrDamaged)
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
	if f.Version != version { // and a later member of the same name
		return nil, fmt.Errorf("version %d, want %d: %w", f.Version, version, ErrDamaged)
	}
	t := &Table{f.Machines, f.Settings}
	return t, t.check()
}

// check returns an error if the table cannot be used.
func (t *Table) check() error {
	rules := 0
	for i, m := range t.Settings {
		if why := m.flaw(); why != "" {
			return fmt.Errorf("setting %d: %s: %w", i+1, why, ErrDamaged)
		}
		if slices.ContainsFunc(t.Settings[:i], func(o Measured) bool { return o.Setting == m.Setting }) {
			return fmt.Errorf("setting %d is there twice: %w", i+1, ErrDamaged)
		}
		if err := checkRules(m.Rules); err != nil {
			return fmt.Errorf("setting %d: %w", i+1, err)
		}
		rules += len(m.Rules)
	}
	if rules > maxRules || len(t.Settings) > maxSettings || len(t.Machines) > maxMachines {
		return fmt.Errorf("%d rules in %d settings of %d machines are too many: %w", rules, len(t.Settings), len(t.Machines), ErrDamaged)
	}
	return nil
}

// checkRules refuses rules that make no sense, and those for the same sizes.
func checkRules(rules []Rule) error {
	last := map[string]int{}
	for i := range rules {
		r := &rules[i]
		if why := r.flaw(); why != "" {
			return fmt.Errorf("rule %d: %s: %w", i+1, why, ErrDamaged)
		}
		if before, found := last[r.Collective]; found && r.From <= before {
			return fmt.Errorf("rule %d comes behind one that is for the same sizes: %w", i+1, ErrDamaged)
		}
		last[r.Collective] = r.UpTo
	}
	return nil
}

// flaw returns why a table may not hold the rule, "" if it may. A table comes from a file
// that other programs may have written.
func (r *Rule) flaw() string {
	for _, name := range []string{r.Collective, r.Algorithm} {
		if name == "" || len(name) > maxName {
			return fmt.Sprintf("a name of %d bytes", len(name))
		}
	}
	switch {
	case len(r.Instead) > maxName:
		return fmt.Sprintf("a name of %d bytes", len(r.Instead))
	case r.From < 0 || r.UpTo < r.From:
		return fmt.Sprintf("from %d up to %d bytes", r.From, r.UpTo)
	case !(r.Micros >= 0 && r.InsteadMicros >= 0) || math.IsInf(r.Micros+r.InsteadMicros, 1): // NaN fails, too
		return "a time that cannot be"
	}
	return ""
}

// For returns the rules for a setting. It returns false if the setting was not measured.
func (t *Table) For(s Setting) ([]Rule, bool) {
	i := slices.IndexFunc(t.Settings, func(m Measured) bool { return m.Setting == s })
	if i < 0 {
		return nil, false
	}
	return t.Settings[i].Rules, true
}

// Keep adds the measurements of an earlier table of the same machines that t did not repeat:
// settings, and collectives other than those that t measured. A table has its latest settings
// first. Keep leaves out all settings from the first that finds no room in keptBytes. So the table
// of any number of measurements can be saved and packed.
func (t *Table) Keep(earlier *Table, measured func(collective string) bool) {
	if !sameMachines(t.Machines, earlier.Machines) {
		return
	}
	again := func(r Rule) bool { return measured(r.Collective) }
	for _, m := range earlier.Settings {
		with := slices.Clone(t.Settings)
		i := slices.IndexFunc(with, func(o Measured) bool { return o.Setting == m.Setting })
		if i < 0 {
			with = append(with, m)
		} else {
			kept := slices.DeleteFunc(slices.Clone(m.Rules), again)
			with[i].Rules = slices.Concat(with[i].Rules, kept)
		}
		if data, err := (&Table{t.Machines, with}).Encode(); err != nil || len(data) > keptBytes {
			return
		}
		t.Settings = with
	}
}

// sameMachines reports whether two lists have the same machines, in any order.
func sameMachines(a, b []Machine) bool {
	lacks := func(of []Machine) func(Machine) bool {
		return func(m Machine) bool { return !slices.Contains(of, m) }
	}
	return !slices.ContainsFunc(a, lacks(b)) && !slices.ContainsFunc(b, lacks(a))
}
