package main

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// claims hands the files out: a rank that adds n to the counter at rank 0 has
// claimed the next n files. A rank with small files simply claims more often.
type claims struct {
	w     *window.Window[uint64]
	files []string
	ranks int
	seen  int // files claimed at this rank's last look
}

// Words of the window at rank 0.
const (
	claimed = iota // files so far
	listed         // fingerprint of the list
	claimWords
)

// newClaims starts handing out files; all ranks must have listed the same ones.
// Kind: collective.
func newClaims(ctx context.Context, team *runtime.Team, files []string) (*claims, error) {
	w, err := window.Allocate[uint64](ctx, team, claimWords, window.WithName("claims"))
	if err != nil {
		return nil, err
	}
	mine := fingerprint(files)
	if team.Rank() == 0 {
		w.Local()[listed] = mine
	}
	if err := w.Fence(ctx); err != nil {
		return nil, err
	}
	first, err := w.GetValue(ctx, 0, listed)
	if err != nil {
		return nil, err
	}
	if first != mine {
		return nil, fmt.Errorf("rank %d lists other files than rank 0 (%d of them): "+
			"the folder must be the same on every host and not change meanwhile", team.Rank(), len(files))
	}
	return &claims{w: w, files: files, ranks: team.Size()}, nil
}

// A claim is a share of the files that are left: at the beginning a claim costs
// little per file, and the ranks finish together.
const (
	claimsPerRank = 8
	maxClaim      = 64
)

// take claims the next files; it returns none if none are left. Kind: one-sided.
func (c *claims) take(ctx context.Context) ([]string, error) {
	want := min(max((len(c.files)-c.seen)/(claimsPerRank*c.ranks), 1), maxClaim)
	old, err := window.FetchAdd(ctx, c.w, 0, claimed, uint64(want))
	if err != nil {
		return nil, err
	}
	from := min(int(old), len(c.files))
	c.seen = min(from+want, len(c.files))
	return c.files[from:c.seen], nil
}

// progress returns the number of files that all ranks have claimed. Kind:
// one-sided.
func (c *claims) progress(ctx context.Context) (int, error) {
	n, err := window.AtomicLoad(ctx, c.w, 0, claimed)
	return min(int(n), len(c.files)), err
}

// free ends the claims once all ranks are done. Kind: collective.
func (c *claims) free(ctx context.Context) error { return c.w.Free(ctx) }

// fingerprint returns a number by which ranks compare their lists of files.
func fingerprint(files []string) uint64 {
	h := fnv.New64a()
	for _, f := range files {
		h.Write([]byte(f + "\x00"))
	}
	return h.Sum64()
}
