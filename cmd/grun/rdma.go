//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rdma describes this machine's support for programs that use RDMA devices.
type rdma struct {
	devices []string // folders of /sys/class/infiniband
	lacks   string   // obstacle to building programs that use them
}

// usable reports whether programs built here can use devices of this machine.
func (r rdma) usable() bool { return len(r.devices) > 0 && r.lacks == "" }

const verbsHeader = "/usr/include/infiniband/verbs.h"

// theRDMA examines this machine.
func theRDMA() rdma {
	devices, _ := filepath.Glob("/sys/class/infiniband/*") // the pattern is well formed
	r := rdma{devices: devices}
	compiler := strings.Fields(os.Getenv("CC") + " gcc")[0]
	if _, err := exec.LookPath(compiler); err != nil {
		r.lacks = "no C compiler: install gcc"
	} else if _, err := os.Stat(verbsHeader); err != nil {
		r.lacks = "no libibverbs: install libibverbs-dev"
	}
	return r
}

// checkRDMA names the RDMA devices and the states of their ports. It warns if this machine cannot
// build programs for them.
func checkRDMA() finding {
	r := theRDMA()
	if len(r.devices) == 0 {
		return finding{verdict: ok, text: "none; jobs use shm and tcp"}
	}
	var list []string
	for _, dev := range r.devices {
		list = append(list, filepath.Base(dev)+" "+portState(dev))
	}
	f := finding{verdict: ok, text: strings.Join(list, ", ")}
	if r.lacks != "" {
		f.verdict, f.mend = warn, r.lacks+", so that grun can build programs that use them"
	}
	return f
}

// portState reads the state of a device's first port, such as "4: ACTIVE".
func portState(dev string) string {
	b, err := os.ReadFile(filepath.Join(dev, "ports/1/state"))
	if err != nil {
		return "(state unknown)"
	}
	_, state, _ := strings.Cut(strings.TrimSpace(string(b)), ": ")
	return "(" + strings.ToLower(state) + ")"
}
