package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/collectives/loggp"
)

// measured names the benchmark of each collective that -check measures.
var measured = map[string]string{
	"broadcast": "coll_broadcast_slices", "reduce": "coll_reduce_slices", "all-reduce": "coll_allreduce_slices",
	"gather": "coll_gather_slices", "scatter": "coll_scatter_slices", "all-gather": "coll_allgather_slices",
	"all-to-all": "coll_alltoall_slices", "scan": "coll_scan_slices",
}

// repeated is the number of calls that ranks make one after the other, as a benchmark does: the
// calls of roots overlap.
const repeated = 64

// compare prints measured and replayed times of two bound ranks.
func (o *options) compare(ctx context.Context, c *constants, dir programs, out, news io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nprovider\tcollective\tbytes\talgorithm\tmeasured\treplayed\tratio")
	for _, over := range []struct {
		provider string
		perHost  int
	}{{"shm", 2}, {"tcp", 1}} {
		fmt.Fprintf(news, "sim: measuring collective calls over %s\n", over.provider)
		var names, sizes []string
		for _, name := range o.collectives {
			if measured[name] != "" {
				names = append(names, measured[name])
			}
		}
		for _, size := range o.sizes {
			sizes = append(sizes, fmt.Sprint(size))
		}
		times, err := benchmarks(ctx, dir, over.provider, o.each, strings.Join(sizes, ","), names...)
		if err != nil {
			return err
		}
		m := c.machine(2, over.perHost)
		for _, name := range o.collectives {
			for _, size := range o.sizes {
				took, ok := times[point{measured[name], size}]
				if !ok {
					continue
				}
				if err := printCheck(table, m, over.provider, name, size, time.Duration(took)); err != nil {
					return err
				}
			}
		}
	}
	return table.Flush()
}

// printCheck prints the line of one call.
func printCheck(out io.Writer, m *loggp.Machine, provider, collective string, size int, took time.Duration) error {
	bytes := longest(m, collective, size)
	algorithm, err := collectives.ChoiceAmong(collectives.Members{Ranks: m.Ranks, PerHost: m.PerHost}, collective, bytes)
	if err != nil {
		return err
	}
	r, err := loggp.Run(m, loggp.Call{Collective: collective, Algorithm: algorithm, Bytes: bytes, Repeat: repeated}, nil)
	if err != nil {
		return err
	}
	each := r.Time / repeated
	fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%v\t%v\t%.2f\n", provider, collective, size, algorithm, took, each, float64(each)/float64(took))
	return nil
}
