package collectives

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestViewReturnsNilOutsideTheRegionsOfAMember has a member name places outside its regions.
func TestViewReturnsNilOutsideTheRegionsOfAMember(t *testing.T) {
	for _, provider := range []string{"loop", "shm"} {
		if provider == "shm" && testwatch.Race {
			continue
		}
		testjob.Config{Provider: provider, Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			g, err := groupOf(r.World)
			r.NoError(err)
			g.ctx = ctx
			b, err := Alloc[byte](r.World, 5000)
			r.NoError(err)
			b.Mem()[4999] = byte(r.Me)
			place := g.placeOf(b.Mem())
			r.NotZero(place.Region)
			all, err := r.World.Exchange(ctx, binary.LittleEndian.AppendUint64(nil, place.Region))
			r.NoError(err)
			other := r.Right()
			id := binary.LittleEndian.Uint64(all[other])
			whole := g.view(other, id, 0, 5000)
			r.Len(whole, 5000)
			r.EqualValues(other, whole[4999])
			r.Len(g.view(other, id, 4096, 904), 904)
			r.Equal(904, cap(g.view(other, id, 4096, 904)))
			for _, wrong := range []struct {
				region, offset uint64
				n              int
			}{{id, 0, 5001}, {id, 4999, 2}, {id, 5001, 0}, {id, math.MaxUint64, 2}, {id, 1, math.MaxInt}, {id, 0, -1},
				{0, 0, 1}, {id + 1000, 0, 1}, {math.MaxUint64, 0, 1}} {
				r.Nil(g.view(other, wrong.region, wrong.offset, wrong.n), "%+v", wrong)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}
