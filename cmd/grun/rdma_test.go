//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgramsAreBuiltForTheRDMADevicesOfTheMachine(t *testing.T) {
	devices := []string{"/sys/class/infiniband/rxe0"}
	for name, c := range map[string]struct {
		has  rdma
		want bool
	}{
		"nothing":               {rdma{}, false},
		"headers, no device":    {rdma{lacks: ""}, false},
		"a device, no compiler": {rdma{devices: devices, lacks: "no C compiler: install gcc"}, false},
		"all that is needed":    {rdma{devices: devices}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := buildCommand(t.Context(), t.TempDir(), "target", c.has)
			if c.want {
				require.Contains(t, cmd.Args, "-tags=ibverbs")
				require.Contains(t, cmd.Env, "CGO_ENABLED=1")
			} else {
				require.NotContains(t, cmd.Args, "-tags=ibverbs")
				require.NotContains(t, cmd.Env, "CGO_ENABLED=1")
			}
			require.Equal(t, ".", cmd.Args[len(cmd.Args)-1])
		})
	}
}

func TestASourceFileIsBuiltFromItsFolder(t *testing.T) {
	cmd := buildCommand(t.Context(), "/somewhere/prog.go", "target", rdma{})
	require.Equal(t, "/somewhere", cmd.Dir)
	require.Equal(t, []string{"go", "build", "-o", "target", "/somewhere/prog.go"}, cmd.Args)
}
