package main

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
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

func (h *hostFlags) define(flags *pflag.FlagSet) {
	flags.StringVarP(&h.list, "host", "H", "", "hosts with their slots, such as a:2,b:2, user@c or eco[1-4]:8; ssh reaches them")
	flags.StringVar(&h.file, "hostfile", "", "a file of hosts: host slots=N, host:N or host in a line")
	flags.StringVar(&h.mapBy, "map-by", "slot", "fill the slots of a host before the next, or place one rank on each node in turn")
	flags.StringVar(&h.ssh, "ssh-cmd", "", "command that reaches other hosts, in place of ssh")
}

// named reports whether the user names hosts.
func (h *hostFlags) named() bool { return h.list != "" || h.file != "" }

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
	spec.Backend = ssh.New(cmp.Or(h.ssh, os.Getenv(bootstrap.EnvSSH)))
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
