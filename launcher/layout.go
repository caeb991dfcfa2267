//go:build linux

package launcher

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/launcher/hosts"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// A host is one host of the job, with the ranks there.
type host struct {
	hosts.Host
	name  string // in errors and in the ranks' environment
	here  bool   // this process is its agent
	plan  wire.Plan
	ranks []*process
	agent agentEnd // nil until assemble makes it
	// remote is the agent of another host, from the start.
	remote *remoteAgent

	// Events that the supervising loop has seen.
	started, lost, errorsRead bool
	loss                      error // the reason, if lost
}

// layOut makes the hosts of the job and places the ranks.
func (j *job) layOut() error {
	list, err := j.hostList()
	if err != nil {
		return err
	}
	places, err := hosts.Place(list, j.size, j.spec.MapBy, j.spec.Oversubscribe)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	all := make([]*host, len(list))
	for i, h := range list {
		all[i] = &host{Host: h, name: h.Name, here: h.IsThis()}
		if all[i].here {
			all[i].name = thisHost()
		}
	}
	rank := 0
	for number, program := range j.spec.Programs {
		for range program.N {
			h := all[places[rank]]
			p := &process{rank: rank, host: h}
			h.ranks, j.ranks = append(h.ranks, p), append(j.ranks, p)
			h.plan.Ranks = append(h.plan.Ranks, wire.Rank{Rank: rank, Program: number, Stdin: j.input.feeds(rank)})
			rank++
		}
	}
	for _, h := range all {
		if len(h.ranks) > 0 {
			j.hosts = append(j.hosts, h)
		}
	}
	return j.checkHosts()
}

// hostList returns the hosts of the Spec, with this host once at most.
func (j *job) hostList() ([]hosts.Host, error) {
	if j.spec.Hosts == nil {
		return []hosts.Host{{Name: "localhost", Slots: j.size}}, nil
	}
	list := make([]hosts.Host, len(j.spec.Hosts))
	for i, h := range j.spec.Hosts {
		if h.Slots < 1 || h.Name == "" {
			return nil, fmt.Errorf("%w: host %q with %d slots", ErrSpec, h.Name, h.Slots)
		}
		if list[i] = h; h.IsThis() {
			list[i].Name = "localhost"
		}
	}
	return hosts.Merge(list), nil
}

// checkHosts gives hosts of the same name different ones, and refuses hosts that no backend
// reaches.
func (j *job) checkHosts() error {
	names := make(map[string]bool)
	for _, h := range j.hosts {
		if names[h.name] { // one host under two users
			h.name = h.String()
		}
		names[h.name] = true
		if !h.here && j.spec.Backend == nil {
			return fmt.Errorf("%w: host %s: %w", ErrSpec, h.name, ErrNoBackend)
		}
		if h.here {
			if err := j.spec.checkDir(); err != nil {
				return err
			}
		}
	}
	return nil
}

// thisHost returns the name of this host.
func thisHost() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// complete makes the plan of a host.
func (j *job) complete(h *host) error {
	spec := &j.spec
	p := &h.plan
	p.JobID, p.Secret, p.Size, p.Host, p.Addr = j.id, j.secret, j.size, h.name, j.addr
	p.Env, p.Dir, p.Bind, p.Guardian, p.Crowd = spec.Env, spec.Dir, int(spec.Bind), spec.Guardian, spec.Oversubscribe
	p.Errors = j.errors != nil
	p.Stdout = spec.OutputDir != "" || spec.Stdout != nil
	p.Stderr = spec.OutputDir != "" || spec.Stderr != nil
	for i, program := range spec.Programs {
		there := wire.Program{Name: program.Path, Path: j.paths[i], Args: program.Args, Env: program.Env}
		if !h.here {
			there.Staged = program.Stage && h.runs(i)
			if !strings.Contains(program.Path, "/") {
				there.Path = program.Path // the host looks it up in its PATH
			}
		}
		p.Programs = append(p.Programs, there)
	}
	if h.here {
		return nil
	}
	var err error
	if p.Dir, err = filepath.Abs(spec.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	_, p.Managed = spec.Backend.(Manager)
	p.Env = append(forwarded(os.Environ()), spec.Env...)
	return nil
}

// runs reports whether ranks of the host run a program.
func (h *host) runs(program int) bool {
	for _, r := range h.plan.Ranks {
		if r.Program == program {
			return true
		}
	}
	return false
}

// goVars are the variables that Go's runtime reads.
var goVars = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK", "GORACE"}

// forwarded returns the variables of this process that ranks of other hosts get.
func forwarded(environ []string) (vars []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "GRUN_") && !bootstrap.SetsVar(name) {
			vars = append(vars, v)
		}
		for _, goVar := range goVars {
			if name == goVar {
				vars = append(vars, v)
			}
		}
	}
	return vars
}
