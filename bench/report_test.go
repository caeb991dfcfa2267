//go:build linux

package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseTakesNamesAndFlagsInAnyOrder(t *testing.T) {
	for _, args := range [][]string{
		{"barrier", "put_latency", "-size", "8,4K", "-time", "1s", "-json"},
		{"-json", "barrier", "-size=8,4K", "put_latency", "-time", "1s"},
	} {
		o, err := parse(args, io.Discard)
		require.NoError(t, err)
		require.Equal(t, []string{"barrier", "put_latency"}, o.names)
		require.Equal(t, []int{8, 4096}, o.sizes)
		require.Equal(t, time.Second, o.time)
		require.True(t, o.json)
	}
}

func TestParseRefusesWrongNamesAndFlags(t *testing.T) {
	for _, args := range [][]string{{}, {"nonsense"}, {"barrier", "-size", "0"}, {"barrier", "-size", "8,"}, {"barrier", "-size", "2G"}} {
		_, err := parse(args, io.Discard)
		require.Error(t, err, "%q", args)
	}
}

func TestBenchmarksToCompareAreInOneGroup(t *testing.T) {
	o := &options{names: []string{"put_latency_floor", "switch", "put_latency", "barrier"}}
	groups, err := o.groups()
	require.NoError(t, err)
	var names [][]string
	for _, g := range groups {
		var in []string
		for _, b := range g {
			in = append(in, b.name)
		}
		names = append(names, in)
	}
	require.Equal(t, [][]string{{"put_latency", "put_latency_floor"}, {"barrier"},
		{"switch_mapped", "switch_fma", "switch_bulk"}}, names)
}

func TestRatiosAreToTheBest(t *testing.T) {
	for name, c := range map[string]struct {
		unit    unit
		medians [3]float64
		want    [3]float64
	}{
		"latency":   {micros(), [3]float64{4, 2, 8}, [3]float64{2, 1, 4}},
		"bandwidth": {megabytes(), [3]float64{4, 2, 8}, [3]float64{2, 4, 1}},
	} {
		results := make([]result, 3)
		for i, m := range c.medians {
			results[i].Median = m
		}
		rate([]benchmark{{unit: c.unit}}, results)
		for i, r := range results {
			require.InDelta(t, c.want[i], r.Ratio, 1e-9, name)
		}
	}
	alone := []result{{Median: 3}}
	rate([]benchmark{{unit: micros()}}, alone)
	require.Zero(t, alone[0].Ratio)
	require.Equal(t, "-", alone[0].ratio())
}

func TestQuantilesOfSortedSamples(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i)
	}
	require.Equal(t, 50., quantile(values, 0.5))
	require.Equal(t, 99., quantile(values, 0.99))
	require.Equal(t, 7., quantile([]float64{7}, 0.99))
}

func TestUnits(t *testing.T) {
	require.InDelta(t, 2.5, micros().value(2.5e-6, 8), 1e-9)
	require.InDelta(t, 1.25, oneWay().value(2.5e-6, 8), 1e-9)
	require.InDelta(t, 4, megabytes().value(1e-6, 4), 1e-9)
}
