package runtime

import (
	"context"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// extents are memory behind that of the barrier: at each member one extent for each other one, which writes there. A
// member knows where its own are once it knows the memory of the barrier. Devices make them when a message comes, so
// no member has to tell another one of them, or to wait for it.
type extents struct{ *Team }

var _ team.Extents = extents{}

// hasExtents reports whether the members have extents. All members get the same result.
func (t *Team) hasExtents() bool {
	return len(t.members) <= team.MostExtents && t.job.fabric.OnDemand() && t.inner.Path == t.job.fabric.Providers()[0]
}

func (e extents) Region() string { return e.region() }

func (e extents) Mine(member int) ([]byte, error) { return e.block.Extent(member) }

func (e extents) Shortage() error { return e.block.Shortage() }

// Of implements team.Extents. The members' blocks have the same length.
func (e extents) Of(ctx context.Context, member int) (*fabric.Remote, error) {
	r, err := e.job.fabric.ResolveAt(ctx, e.members[member], e.region(), e.places[member])
	if err != nil {
		return nil, err
	}
	return r.Behind(len(e.block.Bytes)+e.rank*team.ExtentSize, team.ExtentSize), nil
}
