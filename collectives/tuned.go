package collectives

import (
	"fmt"
	"io"
	"os"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/fabric"
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

// Close has nothing to end.
func (*tuning) Close() {}

// tuningOf returns the tuning of a rank, which reads its file once.
func tuningOf(f *fabric.Fabric) (*tuning, error) {
	a, err := f.Attach("collectives/tuned", func() fabric.Attachment {
		warnings := io.Discard
		if f.Rank() == 0 {
			warnings = os.Stderr
		}
		return newTuning(os.Getenv(tuned.Env), warnings)
	})
	if err != nil {
		return nil, err
	}
	return a.(*tuning), nil //nolint:forcetypeassert // nothing else has this name
}

// newTuning reads a file, unless there is none to read.
func newTuning(path string, warnings io.Writer) *tuning {
	if path == "" || path == tuned.Off {
		return &tuning{}
	}
	table, mark, err := tuned.Load(path)
	if err == nil {
		err = known(table)
	}
	if err != nil {
		fmt.Fprintf(warnings, "gopgas: %s=%s is not used: %v\n", tuned.Env, path, err)
		return &tuning{}
	}
	return &tuning{path, table, mark}
}

// known returns an error if a rule names an algorithm that this version does not have.
func known(t *tuned.Table) error {
	for _, r := range t.Rules {
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

// rank returns the measured choices for n members on a path, by collective.
func (t *tuning) rank(path string, n int) map[message.Collective][]ranked {
	if t.table == nil {
		return nil
	}
	list := map[message.Collective][]ranked{}
	for _, r := range t.table.For(path, n) {
		c, _ := message.Named(r.Collective) // known
		w, _ := wayNamed(c, r.Algorithm)
		upTo := r.UpTo
		if upTo == 0 {
			upTo = always
		}
		list[c] = append(list[c], ranked{rule{c, upTo, n, anywhere, r.Algorithm}, w})
	}
	return list
}

// pathOf names the way in which the members of a team reach each other. It returns "" if
// there are several ways, or several hosts: grun tune measures one machine.
func pathOf(t *team.Team, of topology) string {
	if of.hosts > 1 {
		return ""
	}
	if t.Mapped {
		return tuned.Mapped
	}
	if providers := t.Providers(); len(providers) == 1 {
		return providers[0]
	}
	return ""
}
