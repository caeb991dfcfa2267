package collectives

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/tuned"
)

// A tuning holds the measurements of grun tune that a job uses. It is empty without a
// table, and with a table that the job cannot use.
type tuning struct {
	path  string
	table *tuned.Table
	mark  string // names the table, "" without one
}

// tuningOf returns the tuning of a member of a team.
func tuningOf(t *team.Team) (*tuning, error) {
	own, err := tuned.Of(t.Fabric)
	if err != nil {
		return nil, err
	}
	warnings := io.Discard
	if t.Fabric.Rank() == 0 {
		warnings = os.Stderr
	}
	return newTuning(own, t.Tuned, warnings), nil
}

// newTuning returns the tuning by a rank's own table, if that is the one of all members.
// Members with different tables use none: they would choose different algorithms.
func newTuning(own *tuned.Own, common string, warnings io.Writer) *tuning {
	if own.Table == nil || own.Mark != common {
		return &tuning{}
	}
	if err := known(own.Table); err != nil {
		own.Warn.Do(func() { fmt.Fprintf(warnings, "gopgas: %s=%s is not used: %v\n", tuned.Env, own.Path, err) })
		return &tuning{}
	}
	return &tuning{own.Path, own.Table, own.Mark}
}

// known returns an error if a rule names an algorithm that this version does not have.
func known(t *tuned.Table) error {
	for _, m := range t.Settings {
		if err := knownRules(m.Rules); err != nil {
			return err
		}
	}
	return nil
}

// knownRules refuses a table with a collective or an algorithm that this version does not have.
func knownRules(rules []tuned.Rule) error {
	for _, r := range rules {
		c, ok := message.Named(r.Collective)
		if ok {
			_, ok = wayNamed(c, r.Algorithm)
		}
		if !ok {
			return fmt.Errorf("no %s by %q: %w", r.Collective, r.Algorithm, tuned.ErrDamaged)
		}
	}
	return nil
}

// wayNamed returns a way to do a collective.
func wayNamed(c message.Collective, name string) (*way, bool) {
	switch name {
	case onBoard:
		return &way{Algorithm: message.Algorithm{Name: onBoard, Exact: true}, board: true}, true
	case stagedOnBoard:
		return &way{Algorithm: message.Algorithm{Name: stagedOnBoard, Exact: true}, board: true, staged: true}, true
	}
	al, ok := message.Find(c, name)
	return &way{Algorithm: al}, ok
}

// rank returns the measured choices for a team, by collective. It returns false if the team
// was not measured.
func (t *tuning) rank(of *team.Team) (list map[message.Collective][]ranked, found bool) {
	setting, ok := tuned.SettingOf(of)
	if t.table == nil || !ok {
		return nil, false
	}
	list = map[message.Collective][]ranked{}
	rules, measured := t.table.For(setting)
	for _, r := range rules {
		c, _ := message.Named(r.Collective) // known
		w, _ := wayNamed(c, r.Algorithm)
		list[c] = append(list[c], ranked{rule{c, r.UpTo, always, anywhere, r.Algorithm}, r.From, w})
	}
	return list, measured
}

// report says at rank 0 of a team whether it uses the table.
func (t *tuning) report(w io.Writer, of *team.Team, measured, used bool) {
	setting, known := tuned.SettingOf(of)
	about := setting.String()
	var verdict string
	switch {
	case !known:
		verdict, about = "it holds for no such team", "members with different providers or bindings"
	case !measured:
		verdict = fmt.Sprintf("not measured; measure it with grun tune (the table has %s)", t.settings())
	case !used:
		verdict = tuned.EnvWays + "=messages was not measured"
	default:
		fmt.Fprintf(w, "gopgas: team %s: %s=%s is used: %s\n", of.Name, tuned.Env, t.path, about)
		return
	}
	fmt.Fprintf(w, "gopgas: team %s: %s=%s is not used: %s: %s\n", of.Name, tuned.Env, t.path, about, verdict)
}

// settings lists the settings of the table.
func (t *tuning) settings() string {
	var list []string
	for _, m := range t.table.Settings {
		list = append(list, m.String())
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, "; ")
}
