package fabric

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/arena"
)

// A quarantine keeps memory of this rank that a team's call gave up while other members
// may still use it. It stays registered: a late put does no harm and ends no
// connection. When the team is freed, its members tell each other what they use:
//
//	rank 0                               rank 1
//	Allocate ends by its ctx             Allocate returns: BeginUse
//	Quarantine                           Put ...
//	                                     Free fails: EndUse
//	Team.Free   <-- what each uses -->   Team.Free
//	ReleaseQuarantined
type quarantine struct {
	mu    sync.Mutex
	kept  []quarantined
	inUse map[string]OnClose // by the name of the region at all members
}

type quarantined struct {
	region *Region
	block  arena.Block
}

// OnClose runs when this rank is about to close the job while it uses a window. It tells
// the ranks that wait for a lock which this rank holds, and returns that as an error.
type OnClose func(ctx context.Context) error

// BeginUse records that this rank uses, or is about to use, the members' regions of a name.
func (t *Team) BeginUse(name string, onClose OnClose) {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	if t.quarantine.inUse == nil {
		t.quarantine.inUse = map[string]OnClose{}
	}
	t.quarantine.inUse[name] = onClose
}

// EndUse ends what BeginUse began.
func (t *Team) EndUse(name string) {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	delete(t.quarantine.inUse, name)
}

// InUse returns the names of the regions that this rank uses.
func (t *Team) InUse() []string {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	return slices.Collect(maps.Keys(t.quarantine.inUse))
}

// Closing runs OnClose of all that this rank uses.
func (t *Team) Closing(ctx context.Context) error {
	t.quarantine.mu.Lock()
	all := slices.Collect(maps.Values(t.quarantine.inUse))
	t.quarantine.mu.Unlock()
	var errs []error
	for _, onClose := range all {
		errs = append(errs, onClose(ctx))
	}
	return errors.Join(errs...)
}

// Quarantine keeps memory that this rank gives up and other members may use.
// ReleaseQuarantined gives it back, or the job's Close.
func (t *Team) Quarantine(r *Region, b arena.Block) {
	t.Arena().Quarantine(b)
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	t.quarantine.kept = append(t.quarantine.kept, quarantined{r, b})
}

// ReleaseQuarantined gives quarantined memory back, apart from regions that members still
// use. No member begins to use any of the others.
func (t *Team) ReleaseQuarantined(used []string) error {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	var errs []error
	for _, q := range t.quarantine.kept {
		if !slices.Contains(used, q.region.name) {
			errs = append(errs, q.region.Close(), t.Arena().Release(q.block))
		}
	}
	t.quarantine.kept = nil // the others stay until the job closes
	return errors.Join(errs...)
}
