package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// TestEveryRankWasGreetedByItsLeftNeighbor compares the output of the ranks.
func TestEveryRankWasGreetedByItsLeftNeighbor(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range []int{1, 2, 3, 4, 8} {
			t.Run(fmt.Sprintf("%s/%d", provider, n), func(t *testing.T) {
				var want []string
				for rank := range n {
					want = append(want, fmt.Sprintf("rank %d of %d: rank %d was here", rank, n, (rank+n-1)%n))
				}
				got := printed(t, func() error {
					return testjob.RunLocal(t.Context(), n, hello, runtime.WithProvider(provider))
				})
				slices.Sort(got)
				require.Equal(t, want, got)
			})
		}
	}
}

// printed returns the lines that do prints.
func printed(t *testing.T, do func() error) []string {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	out := os.Stdout
	os.Stdout = w
	err = do() // prints less than a pipe holds
	os.Stdout = out
	require.NoError(t, err)
	require.NoError(t, w.Close())
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
