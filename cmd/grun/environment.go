//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/tuned"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/gopgas/gopgas/runtime"
)

// A setting is a flag of the command line, and the variable that tells the ranks.
type setting struct{ flag, name, value string }

// settings returns the flags of the command line that have a variable.
func (o *options) settings() (list []setting, err error) {
	if o.provider != "" {
		if _, err := runtime.ParseProviders(o.provider); err != nil {
			return nil, err
		}
		list = append(list, setting{"--provider " + o.provider, bootstrap.EnvProvider, o.provider})
	}
	if o.iface != "" {
		list = append(list, setting{"--iface " + o.iface, bootstrap.EnvIface, o.iface})
	}
	if o.tls {
		list = append(list, setting{"--tls", bootstrap.EnvTLS, "1"})
	}
	if o.heap != "" {
		if _, err := runtime.ParseSize(o.heap); err != nil {
			return nil, fmt.Errorf("--heap %s: %w", o.heap, err)
		}
		list = append(list, setting{"--heap " + o.heap, bootstrap.EnvHeap, o.heap})
	}
	if o.peerTimeout > 0 {
		text := o.peerTimeout.String()
		list = append(list, setting{"--peer-timeout " + text, bootstrap.EnvPeerTimeout, text})
	}
	if o.startTimeout > 0 {
		text := o.startTimeout.String()
		list = append(list, setting{"--start-timeout " + text, bootstrap.EnvStartTimeout, text})
	}
	if o.stats {
		list = append(list, setting{"--stats", bootstrap.EnvStats, "1"})
	}
	return list, nil
}

// environment returns the variables that the flags set, and the tables of grun tune for the
// job's hosts.
func (o *options) environment(list []hosts.Host) (env []string, err error) {
	settings, err := o.settings()
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		env = append(env, s.name+"="+s.value)
	}
	vars, err := o.tunedVars(list)
	return append(env, vars...), err
}

// checkVars refuses variables of -x that contradict a flag, or that only grun
// can set, and tables of grun tune that are not there.
func (o *options) checkVars(programs []launcher.Program) error {
	list, err := o.settings()
	if err != nil {
		return err
	}
	here := os.Getenv(tuned.Env)
	for _, p := range programs {
		table := here
		for _, v := range p.Env {
			name, value, _ := strings.Cut(v, "=")
			for _, s := range list {
				if name == s.name && value != s.value {
					return fmt.Errorf("%s and -x %s contradict each other; give one of them", s.flag, v)
				}
			}
			if bootstrap.SetsVar(name) {
				return fmt.Errorf("-x %s: grun itself sets %s", v, name)
			}
			if name == tuned.Env {
				table = value
			}
		}
		if err := o.checkTable(table); err != nil {
			return err
		}
	}
	return nil
}

// wantsStats reports whether a variable says that grun prints statistics, as --stats does.
func wantsStats(programs []launcher.Program) bool {
	const asked = bootstrap.EnvStats + "=1"
	return slices.Contains(os.Environ(), asked) || slices.ContainsFunc(programs, func(p launcher.Program) bool {
		return slices.Contains(p.Env, asked)
	})
}
