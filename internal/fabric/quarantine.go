package fabric

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/arena"
)

// A quarantine keeps a team's memory at this rank that a call gave up while other
// members may still use it. It stays registered: a put that comes still does no harm,
// and ends no connection. When the team is freed, its members tell what they use:
//
//	rank 0                               rank 1
//	Allocate ends by its ctx             Allocate returns
//	Quarantine                           Entered
//	                                     Put ...
//	                                     Free fails: Left
//	Team.Free   <-- what each uses -->   Team.Free
//	Discharge
type quarantine struct {
	mu      sync.Mutex
	kept    []quarantined
	entered map[string]Part // what this rank uses, by the name of the region at all members
}

type quarantined struct {
	region *Region
	block  arena.Block
}

// A Part tells the others what this rank keeps them waiting for in a window, and returns
// it as an error. The job is about to close here.
type Part func(ctx context.Context) error

// Enter records that this rank uses, or is about to use, the members' regions of a name.
func (t *Team) Enter(name string, part Part) {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	if t.quarantine.entered == nil {
		t.quarantine.entered = map[string]Part{}
	}
	t.quarantine.entered[name] = part
}

// Left ends what Enter began.
func (t *Team) Left(name string) {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	delete(t.quarantine.entered, name)
}

// Uses returns the names that were entered and not left.
func (t *Team) Uses() []string {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	return slices.Collect(maps.Keys(t.quarantine.entered))
}

// Part calls the Part of all that was entered and not left.
func (t *Team) Part(ctx context.Context) error {
	t.quarantine.mu.Lock()
	all := slices.Collect(maps.Values(t.quarantine.entered))
	t.quarantine.mu.Unlock()
	var errs []error
	for _, part := range all {
		errs = append(errs, part(ctx))
	}
	return errors.Join(errs...)
}

// Quarantine keeps memory that this rank gives up and other members may use. Discharge
// gives it back, or the job's Close.
func (t *Team) Quarantine(r *Region, b arena.Block) {
	t.Arena().Quarantine(b)
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	t.quarantine.kept = append(t.quarantine.kept, quarantined{r, b})
}

// Discharge gives back what is quarantined, apart from regions that are still used. No
// member begins to use any of the others.
func (t *Team) Discharge(used []string) error {
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
