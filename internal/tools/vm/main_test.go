//go:build linux

package main

import (
	"bytes"
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSeparatesFlagsFromTheCommand(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	o, err := parse([]string{"-env", "A=1", "-timeout", "9s", "-env", "_b=x=y", "-bin", "p", "-share", "sub", "--", "sh", "-c", "exit 7"}, &bytes.Buffer{})
	require.NoError(t, err)
	require.Equal(t, options{
		arch:     archs["amd64"],
		command:  []string{"sh", "-c", "exit 7"},
		env:      []string{"A=1", "_b=x=y"},
		programs: []string{"p"},
		share:    filepath.Join(folder, "sub"),
		cache:    filepath.Join(folder, ".cache/vm"),
		memory:   1024, cpus: 2, machines: 1, timeout: 9 * time.Second,
	}, o)
}

func TestParseNamesTheWrongArgument(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "no COMMAND"},
		{[]string{"--"}, "no COMMAND"},
		{[]string{"-env", "A", "--", "true"}, "NAME=VALUE"},
		{[]string{"-env", "A B=1", "--", "true"}, "NAME=VALUE"},
		{[]string{"-env", "1A=1", "--", "true"}, "NAME=VALUE"},
		{[]string{"-env", "=1", "--", "true"}, "NAME=VALUE"},
		{[]string{"-timeout", "soon", "--", "true"}, "timeout"},
		{[]string{"-nvme", "3", "-packages", "x", "--", "true"}, "power of two"},
		{[]string{"-nvme", "4", "--", "true"}, "-packages"},
		{[]string{"-machines", "3", "--", "true"}, "-machines 3"},
		{[]string{"-machines", "0", "--", "true"}, "-machines 0"},
		{[]string{"-arch", "vax", "--", "true"}, "-arch vax: choose one of amd64, arm64"},
		{[]string{"-arch", "arm64", "-machines", "2", "--", "true"}, "RDMA"},
		{[]string{"-arch", "arm64", "-dax", "64", "--", "true"}, "RDMA"},
		{[]string{"-share", "/", "--", "true"}, "-share /"},
	} {
		_, err := parse(c.args, &bytes.Buffer{})
		require.ErrorContains(t, err, c.says)
	}
}

func TestPreparingTakesNoCommand(t *testing.T) {
	o, err := parse([]string{"-prepare"}, &bytes.Buffer{})
	require.NoError(t, err)
	require.True(t, o.prepare)
}

func TestHelpShowsFlagsAndExamples(t *testing.T) {
	var out bytes.Buffer
	_, err := parse([]string{"-h"}, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, word := range []string{"COMMAND", "-share", "-timeout", "-env", "-bin", "rdma link show"} {
		require.Contains(t, out.String(), word)
	}
}
