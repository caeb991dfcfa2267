package team

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A quarantine keeps memory of this rank after a failed call, while other members of
// the team may use it. The memory stays registered: a late put does no harm and ends no
// connection. When the members free the team, they exchange the names of the memory
// that they use:
//
//	rank 0                               rank 1
//	Allocate ends by its ctx             Allocate returns: BeginUse
//	Quarantine                           Put ...
//	                                     Free fails: EndUse
//	Team.Free   <-- what each uses -->   Team.Free
//	ReleaseQuarantined
type quarantine struct {
	mu   sync.Mutex
	kept []quarantined
}

// A quarantined is memory that peers may still write: nothing uses it again until all members have
// freed it.
type quarantined struct {
	region *fabric.Region
	block  arena.Block
}

// belongsTo reports whether the memory is that of a name, or a further region of it.
func (q *quarantined) belongsTo(name string) bool {
	return q.region.Name() == name || strings.HasPrefix(q.region.Name(), name+"/")
}

// Quarantine keeps memory that this rank gives up and other members may use. b is empty for
// memory of the program.
// ReleaseQuarantined or the job's Close gives it back.
func (t *Team) Quarantine(r *fabric.Region, b arena.Block) {
	t.Arena().Quarantine(b)
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	t.quarantine.kept = append(t.quarantine.kept, quarantined{r, b})
}

// ReleaseQuarantined gives quarantined memory back, apart from regions that members still
// use. Precondition: no member begins to use a region that is not in used.
func (t *Team) ReleaseQuarantined(used []string) error {
	t.quarantine.mu.Lock()
	defer t.quarantine.mu.Unlock()
	var errs []error
	for _, q := range t.quarantine.kept {
		if slices.ContainsFunc(used, q.belongsTo) {
			continue
		}
		err := q.region.Close()
		if err == nil && q.block.Bytes != nil { // else a stopped peer may still change the block
			err = t.Arena().Release(q.block)
		}
		errs = append(errs, err)
	}
	t.quarantine.kept = nil // blocks in use stay until the job closes
	return errors.Join(errs...)
}
