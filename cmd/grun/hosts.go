//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/gopgas/gopgas/launcher/slurm"
	"github.com/gopgas/gopgas/launcher/ssh"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hostFlags say where the ranks run.
type hostFlags struct {
	list, file string
	mapBy      string
	ssh        string
}

// define adds the flags that name hosts.
func (h *hostFlags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&h.list, "host", "H", "", "hosts with their slots, such as a:2,b:2, user@c or eco[1-4]:8; ssh reaches them")
	flags.StringVar(&h.file, "hostfile", "", "a file of hosts: host slots=N, host:N or host in a line")
	flags.StringVar(&h.mapBy, "map-by", "slot", "fill the slots of a host before the next, or place one rank on each node in turn")
	flags.StringVar(&h.ssh, "ssh-cmd", "", "command that reaches other hosts, in place of ssh")
}

// spec sets the fields of a job that concern its hosts.
func (h *hostFlags) spec(spec *launcher.Spec) (err error) {
	switch {
	case h.list != "" && h.file != "":
		return errors.New("-H and --hostfile both name hosts; give one of them")
	case h.list != "":
		spec.Hosts, err = hosts.ReadList(h.list)
	case h.file != "":
		spec.Hosts, err = hosts.ReadFile(h.file)
	}
	if err != nil {
		return err
	}
	if spec.MapBy, err = hosts.ParseBy(h.mapBy); err != nil {
		return err
	}
	return h.reach(spec)
}

// reach sets the backend: srun for nodes of a Slurm allocation, ssh for other hosts, and a
// command that the user names for all. Without a list of hosts the job gets the nodes.
func (h *hostFlags) reach(spec *launcher.Spec) error {
	command := cmp.Or(h.ssh, os.Getenv(bootstrap.EnvSSH))
	spec.Backend = ssh.New(command)
	if spec.Hosts != nil && command != "" {
		return nil
	}
	allocation, ok, err := slurm.FromEnv(os.LookupEnv)
	if err != nil && spec.Hosts == nil {
		return err
	}
	switch {
	case !ok || spec.Hosts != nil && !allocation.Has(spec.Hosts):
		return nil
	case spec.Hosts == nil:
		spec.Hosts = allocation.Nodes
		if os.Getenv("GOMAXPROCS") == "" && allocation.TaskCPU > 1 {
			spec.Env = []string{fmt.Sprintf("GOMAXPROCS=%d", allocation.TaskCPU)} // as in a task of srun
		}
	}
	if command == "" {
		spec.Backend = slurm.Backend{Job: allocation.Job}
	}
	return nil
}

// peerLimit returns the bound of another host's silence.
func (o *options) peerLimit() time.Duration {
	if o.peerTimeout > 0 {
		return o.peerTimeout
	}
	d, _ := time.ParseDuration(os.Getenv(bootstrap.EnvPeerTimeout)) // the ranks report a mistake
	return max(d, 0)
}

// newAgent returns the command that grun runs on other hosts.
func newAgent() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "Run the ranks of this host for a grun on another host",
		Hidden: true,
		RunE:   func(_ *cobra.Command, args []string) error { return launcher.AgentMain(args) },
	}
}
