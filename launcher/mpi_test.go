//go:build linux

package launcher

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/pmi"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// managedBodies are programs that start by PMI, as programs of MPI do.
var managedBodies = map[string]func() int{
	"mpi": managed(func(c *pmi.Client) int { return finalized(c) }),
	"mpi fails": managed(func(c *pmi.Client) int {
		if c.Rank() == 1 {
			return 7
		}
		return finalized(c)
	}),
	"mpi stays": managed(func(c *pmi.Client) int {
		if c.Rank() == 1 {
			return 0
		}
		return fenced(c)
	}),
	"mpi aborts": managed(func(c *pmi.Client) int {
		if c.Rank() == 1 {
			c.Abort("no more")
			return 3
		}
		return fenced(c)
	}),
	"mpi fails in a fence": managed(func(c *pmi.Client) int {
		if c.Rank() == 1 {
			go c.Fence(context.Background())
			time.Sleep(50 * time.Millisecond) // mostly, the fence has it then
			return 7
		}
		time.Sleep(time.Hour) // the launcher ends it
		return 0
	}),
	"mpi or not": func() int {
		if os.Getenv("PMI_RANK") == "1" {
			return 0
		}
		return managed(fenced)()
	},
}

// managed runs f once all ranks have met by PMI and have each other's values.
func managed(f func(*pmi.Client) int) func() int {
	return func() int {
		ctx := context.Background()
		c, err := pmi.Open(ctx, os.LookupEnv)
		if err != nil {
			fmt.Println(err)
			return 80
		}
		if os.Getenv("GOPGAS_TEST_ALONE") != "" { // other ranks do not come
			return f(c)
		}
		if c.Put(ctx, fmt.Sprint("k", c.Rank()), fmt.Sprint("v", c.Rank())) != nil || c.Fence(ctx) != nil {
			return 81
		}
		for rank := range c.Size() {
			if value, err := c.Get(ctx, fmt.Sprint("k", rank)); err != nil || value != fmt.Sprint("v", rank) {
				return 82
			}
		}
		one, err := c.OneNode(ctx)
		if err != nil {
			return 83
		}
		fmt.Printf("rank %d of %d, one node: %v\n", c.Rank(), c.Size(), one)
		return f(c)
	}
}

func finalized(c *pmi.Client) int {
	if c.Finalize(context.Background()) != nil {
		return 84
	}
	return 0
}

// fenced waits for ranks that do not come, and says why it got no further.
func fenced(c *pmi.Client) int {
	fmt.Println(c.Fence(context.Background()))
	return 0
}

func TestRanksMeetByPMI(t *testing.T) {
	o := run(t, Spec{Programs: []Program{ranks(3, "mpi")}})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode, o.Summary()+o.stdout.String())
	require.Equal(t, 3, strings.Count(o.stdout.String(), "of 3, one node: true"))
	for _, list := range []string{"a:2,b:2", "localhost:2,b:2"} {
		o := newFakeHosts(t, "").run(t, list, Spec{Programs: []Program{ranks(4, "mpi")}})
		require.NoError(t, o.err, list)
		require.Equal(t, 0, o.ExitCode, o.Summary()+o.stdout.String())
		require.Equal(t, 4, strings.Count(o.stdout.String(), "of 4, one node: false"), o.stdout.String())
	}
}

func TestFailuresOfRanksOfMPIAreNamed(t *testing.T) {
	for body, want := range map[string]struct {
		code    int
		summary string
	}{
		"mpi fails":  {7, "exited with code 7"},
		"mpi stays":  {1, "exited without MPI_Finalize"},
		"mpi aborts": {3, "called MPI_Abort with code 1"},
		"mpi or not": {1, "exited without ever calling MPI_Init, in which other ranks wait"},
	} {
		for _, list := range []string{"", "a:1,b:1"} {
			spec := Spec{Programs: []Program{ranks(2, body)}, Grace: testwatch.Patience()}
			if body == "mpi or not" {
				spec.Env = []string{"GOPGAS_TEST_ALONE=1"}
			}
			var o outcome
			if list == "" {
				o = run(t, spec)
			} else {
				o = newFakeHosts(t, "").run(t, list, spec)
			}
			require.NoError(t, o.err, body)
			failed := ""
			for _, f := range o.Failures {
				failed += fmt.Sprintln("rank", f.Rank, f.Reason)
			}
			require.Contains(t, failed, "rank 1 "+want.summary+"\n", body+list)
			require.Equal(t, want.code, o.ExitCode, body+list+failed)
		}
	}
}

// TestRankOfMPIWhoseChildKeepsItsConnectionEnds has a child of each rank inherit the descriptor.
func TestRankOfMPIWhoseChildKeepsItsConnectionEnds(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for body, want := range map[string]string{"mpi fails": "exited with code 7", "mpi aborts": "called MPI_Abort with code 1", "mpi fails in a fence": "exited with code 7"} {
		program := ranks(2, body)
		program.Args = append([]string{"-c", `sleep 1000 & exec "$0"`, exe}, program.Args...)
		program.Path = "sh"
		for _, list := range []string{"localhost:2", "a:1,b:1"} {
			o := newFakeHosts(t, "").run(t, list, Spec{Programs: []Program{program}, Grace: 50 * time.Millisecond})
			require.NoError(t, o.err, body)
			require.Equal(t, 1, o.Failures[0].Rank, body+list+o.Summary())
			require.Contains(t, o.Failures[0].Reason, want, body+list)
		}
	}
}

// TestRankGetsTheProcessManagerOfItsOwnJob has the launcher run under another process manager.
func TestRankGetsTheProcessManagerOfItsOwnJob(t *testing.T) {
	for _, v := range []string{"PMI_PORT=h:1", "PMI_ID=5", "PMI_JOBID=x", "PMI_FD=99", "PMI_RANK=7", "PMI_SIZE=9"} {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	o := run(t, Spec{Programs: sh(2, "env | grep ^PMI_ | sort | tr '\\n' ' '; echo; [ -S /proc/self/fd/$PMI_FD ]")})
	require.NoError(t, o.err)
	require.Equal(t, 0, o.ExitCode, o.Summary())
	var want []string
	for rank := range 2 {
		want = append(want, "PMI_FD=3 PMI_RANK="+strconv.Itoa(rank)+" PMI_SIZE=2 ")
	}
	require.ElementsMatch(t, want, o.stdout.lines())
}
