package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/runtime"
)

func local(n int, provider string, body runtime.Body) error {
	return testjob.RunLocal(context.Background(), n, body, runtime.WithProvider(provider))
}

// TestTreesDoNotDependOnTheNumberOfRanks runs the program, which compares each tree with
// that of one rank alone. The line of a search names the size of its tree.
func TestTreesDoNotDependOnTheNumberOfRanks(t *testing.T) {
	for scale, ranks := range map[int][]int{1: {1, 3}, 7: {1, 2, 3, 4}} {
		trees := ""
		for _, n := range ranks {
			for _, provider := range []string{"loop", "tcp"} {
				var out strings.Builder // rank 0 alone prints
				o := options{scale: scale, edges: 4, roots: 2, seed: 1, out: &out}
				require.NoError(t, local(n, provider, o.run), "scale %d, %d ranks, %s", scale, n, provider)
				var found strings.Builder
				for line := range strings.Lines(out.String()) {
					tree, _, ok := strings.Cut(line, " levels")
					if ok {
						found.WriteString(tree + "\n")
					}
				}
				if trees == "" {
					trees = found.String()
				}
				require.Equal(t, trees, found.String())
				require.Equal(t, 2, strings.Count(out.String(), "verified"), out.String())
			}
		}
	}
}

func TestVerifyFindsAWrongTree(t *testing.T) {
	for name, damage := range map[string]func(s *search, i int){
		"no edge to the parent": func(s *search, i int) { s.parent[i] = s.g.first + int64(i) },
		"a level too deep":      func(s *search, i int) { s.level[i]++ },
		"a vertex left out":     func(s *search, i int) { s.parent[i], s.level[i] = none, none },
	} {
		t.Run(name, func(t *testing.T) {
			err := local(2, "loop", func(ctx context.Context, job *runtime.Job) error {
				o := options{scale: 6, edges: 4, seed: 1}
				c, err := conveyor.Open[edge](ctx, job.World())
				if err != nil {
					return err
				}
				g, err := build(ctx, job.World(), c, &o)
				if err != nil {
					return err
				}
				records, err := conveyor.Open[edge](ctx, job.World())
				if err != nil {
					return err
				}
				s := &search{g: g, records: records}
				root, err := g.root(ctx, 1, 0)
				if err == nil {
					_, err = s.run(ctx, root)
				}
				if err != nil {
					return err
				}
				if job.World().Rank() == 1 {
					for i, level := range s.level {
						if level > 0 {
							damage(s, i)
							break
						}
					}
				}
				return s.verify(ctx, root)
			})
			require.ErrorIs(t, err, errTree)
		})
	}
}

func TestNumbersOfVerticesAreScrambledOneToOne(t *testing.T) {
	for scale := 1; scale < 12; scale++ {
		seen := map[int64]bool{}
		for v := range int64(1) << scale {
			w := scramble(v, scale)
			require.GreaterOrEqual(t, w, int64(0))
			require.Less(t, w, int64(1)<<scale)
			seen[w] = true
		}
		require.Len(t, seen, 1<<scale, fmt.Sprint("scale ", scale))
	}
}
