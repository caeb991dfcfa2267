package team

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
)

// uses records the members' memory that this rank uses, or is about to use. The index is
// the name of the region at all members.
type uses struct {
	mu     sync.Mutex
	byName map[string]OnClose
	owners map[uint64]any // windows, by ID of their regions' name
}

// OnClose runs when this rank is about to close the job while it uses a window. If this
// rank holds a lock, it tells the ranks that wait for the lock, and returns an error.
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

// EndUse ends the use that BeginUse recorded.
func (t *Team) EndUse(name string) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	delete(t.uses.byName, name)
	delete(t.uses.owners, ID(name))
}

// ID returns a number for the name of a region, the same at all ranks and in all programs.
func ID(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it returns no error
	return h.Sum64()
}

// SetOwner records the window whose regions have this name, until EndUse.
func (t *Team) SetOwner(name string, window any) {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	if t.uses.owners == nil {
		t.uses.owners = map[uint64]any{}
	}
	t.uses.owners[ID(name)] = window
}

// Owner returns the window that SetOwner recorded for an ID, nil if there is none.
func (t *Team) Owner(id uint64) any {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	return t.uses.owners[id]
}

// InUse returns the names of the regions that this rank uses.
func (t *Team) InUse() []string {
	t.uses.mu.Lock()
	defer t.uses.mu.Unlock()
	return slices.Collect(maps.Keys(t.uses.byName))
}

// Closing runs OnClose of all regions that this rank uses.
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
