package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// lockedBuffer takes the output of several ranks.
type lockedBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// jobs are the sizes that every test runs at.
var jobs = []int{1, 2, 3, 4, 8}

// local runs body on n ranks of this process under a watchdog.
func local(n int, provider string, body runtime.Body) error {
	return testjob.RunLocal(context.Background(), n, body, runtime.WithProvider(provider))
}

// everywhere runs test for each provider and size of job.
func everywhere(t *testing.T, test func(t *testing.T, n int, provider string)) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range jobs {
			if testwatch.Race && n > 4 {
				continue // more ranks make accesses at the same places
			}
			t.Run(fmt.Sprintf("%s/%d", provider, n), func(t *testing.T) { test(t, n, provider) })
		}
	}
}

// contents returns the content of a table at all ranks. It fails on a word that
// is there twice.
func contents(ctx context.Context, table *Table) (map[string]uint64, error) {
	all := map[string]uint64{}
	for owner := range table.team.Size() {
		p, err := table.fetch(ctx, owner)
		if err != nil {
			return nil, err
		}
		for slot, e := range p.entries() {
			if _, ok := all[e.Word]; ok {
				return nil, fmt.Errorf("%q is there twice", e.Word)
			}
			all[e.Word] = e.Count
			if single, err := table.at(ctx, owner, slot); err != nil || single != e {
				return nil, fmt.Errorf("slot %d of rank %d: %v, %w, want %v", slot, owner, single, err, e)
			}
		}
	}
	return all, nil
}

// filled makes a table of each rank's additions, by rank.
func filled(ctx context.Context, team *runtime.Team, hash func(string) uint64, adds []map[string]uint64) (*Table, error) {
	plan := NewPlan(team.Size())
	if hash != nil {
		plan.hash = hash
	}
	mine := adds[team.Rank()]
	for w := range mine {
		plan.Add(w)
	}
	table, err := NewTable(ctx, team, plan)
	if err != nil {
		return nil, err
	}
	for w, n := range mine {
		if err := table.Add(ctx, w, n); err != nil {
			return nil, err
		}
	}
	return table, table.Fence(ctx)
}

// sum returns the expected content of a table after adds.
func sum(adds []map[string]uint64) map[string]uint64 {
	all := map[string]uint64{}
	for _, a := range adds {
		for w, n := range a {
			all[w] += n
		}
	}
	return all
}

func requireContents(t require.TestingT, n int, provider string, hash func(string) uint64, adds []map[string]uint64) {
	require.NoError(t, local(n, provider, func(ctx context.Context, job *runtime.Job) error {
		table, err := filled(ctx, job.World(), hash, adds)
		if err != nil {
			return err
		}
		got, err := contents(ctx, table)
		if err != nil {
			return err
		}
		if want := sum(adds); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("rank %d sees %.500v, want %.500v", job.World().Rank(), got, want)
		}
		return table.Free(ctx)
	}))
}
