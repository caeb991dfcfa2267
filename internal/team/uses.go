package team

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// uses are the members' memory that this rank uses, or is about to use, by the name of the
// region at all members.
type uses struct {
	mu     sync.Mutex
	byName map[string]OnClose
}

// OnClose runs when this rank is about to close the job while it uses a window. It tells
// the ranks that wait for a lock which this rank holds, and returns that as an error.
type OnClose func(ctx context.Context) error

// BeginUse records that this rank uses, or is about to use, the members' regions of a name.
func (t *Team) BeginUse(name string, onClose OnClose) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	if t.uses.byName == nil {
		t.uses.byName = map[string]OnClose{}
	}
	t.uses.byName[name] = onClose
}

// EndUse ends what BeginUse began.
func (t *Team) EndUse(name string) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	delete(t.uses.byName, name)
}

// InUse returns the names of the regions that this rank uses.
func (t *Team) InUse() []string {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	return slices.Collect(maps.Keys(t.uses.byName))
}

// Closing runs OnClose of all that this rank uses.
func (t *Team) Closing(ctx context.Context) error {
	t.uses.mu.Lock()
	all := slices.Collect(maps.Values(t.uses.byName))
	t.uses.mu.Unlock()
	var errs []error
	for _, onClose := range all {
		errs = append(errs, onClose(ctx))
	}
	return errors.Join(errs...)
}
