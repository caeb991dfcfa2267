package rpipe_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

func TestMain(m *testing.M) {
	bodies := bodiesOfDeath()
	maps.Copy(bodies, bodiesOverWindows())
	maps.Copy(bodies, bodiesOfAggregates())
	bodies["beside the stopped"], bodies["beside the stopped, not connected"] = besideTheStopped(true), besideTheStopped(false)
	bodies["beside slow receivers"] = crowd{rounds: crowdRounds, stop: stopProcess, resume: resumeProcess}.body
	bodies["on hosts"] = onHosts
	testjob.Main(m, bodies)
}

// onHosts checks pipes from each rank to the next one. Package faults runs it on real hosts.
func onHosts(ctx context.Context, r *testjob.Rank) {
	for seed := range uint64(16) {
		p := drawProgram(seed, 100)
		w, err := rpipe.OpenWriter[byte](ctx, r.World, r.Right(), p.opts...)
		r.NoError(err)
		rd, err := rpipe.OpenReader[byte](ctx, r.World, r.Left(), p.opts...)
		r.NoError(err)
		wrote := make(chan error, 1)
		go func() { wrote <- errors.Join(p.write(ctx, w), w.Close(ctx)) }()
		r.NoError(p.read(ctx, rd), "seed %d", seed)
		r.NoError(<-wrote)
		r.NoError(rd.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
	}
}
