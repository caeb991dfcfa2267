//go:build linux

package launcher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/uuid"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/pmi"
	"github.com/gopgas/gopgas/launcher/internal/agent"
	"github.com/gopgas/gopgas/launcher/internal/spawn"
)

// A job is one Run.
type job struct {
	spec   Spec
	id     string
	addr   string // of the rendezvous, for ranks of this host
	secret []byte
	size   int
	paths  []string // of the programs on this host; "": only other hosts have it

	server  *bootstrap.Server
	manager *pmi.Server
	input   *input
	output  *output
	errors  *finalErrors // nil: ranks print their errors themselves
	hosts   []*host      // that have ranks
	ranks   []*process
	events  chan event
	over    chan struct{} // closed when the launcher takes no more events

	tunnels *spawn.Spawner // of the commands that reach other hosts; nil: there are none
	self    *executable    // of agents; nil: there are none

	supervision
}

// Run starts a job and returns when all of it has ended. The error is the
// launcher's own. The Result says how the ranks ended; its ExitCode is always
// valid. The end of ctx ends the job as its Timeout does. ErrSpec: the Spec describes
// no job, or names hosts without a Backend. A *StartError names a program that did not
// start. Kind: local.
func Run(ctx context.Context, spec Spec) (result Result, err error) {
	j, err := newJob(spec)
	if err != nil {
		return Result{ExitCode: codeOf(err)}, err
	}
	defer func() {
		if lost := j.release(); lost != nil && err == nil && result.ExitCode == 0 {
			result.ExitCode, err = ExitInternal, lost
		}
		result.Ended = j.endedBy()
	}()
	return j.supervise(ctx)
}

// codeOf returns the exit code for an error of the launcher.
func codeOf(err error) int {
	var start *StartError
	if errors.As(err, &start) {
		return start.Code
	}
	var managed *managerError
	if errors.As(err, &managed) {
		return exitSignal + int(syscall.SIGTERM)
	}
	return ExitInternal
}

// newJob makes the root's parts of a job.
func newJob(spec Spec) (j *job, err error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("name the job: %w", err)
	}
	j = &job{
		spec: spec, id: id.String(), size: spec.size(),
		secret: make([]byte, bootstrap.SecretSize),
		events: make(chan event, 64), over: make(chan struct{}),
	}
	rand.Read(j.secret)
	j.input = &input{spec: &j.spec, quit: j.over}
	if err := j.layOut(); err != nil {
		return nil, err
	}
	if err := j.resolve(); err != nil {
		return nil, err
	}
	if j.output, err = newOutput(&j.spec, tagsOf(j), j.loseOutput); err != nil {
		return nil, err
	}
	if spec.OutputDir == "" && spec.Stderr != nil {
		j.errors = &finalErrors{}
	}
	if err := j.open(); err != nil {
		return nil, err
	}
	for _, h := range j.hosts {
		if err := j.complete(h); err != nil {
			return nil, errors.Join(err, j.release())
		}
	}
	return j, nil
}

// resolve finds the programs that this host runs or copies, relative to this process's
// working directory, not the ranks'.
func (j *job) resolve() error {
	j.paths = make([]string, len(j.spec.Programs))
	for i, p := range j.spec.Programs {
		path, err := exec.LookPath(p.Path)
		if errors.Is(err, exec.ErrDot) {
			err = fmt.Errorf("%w; write ./%s", err, p.Path)
		}
		if err != nil && !j.needs(i) {
			path, err = p.Path, nil
		}
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return agent.LookError(p.Path, err)
		}
		j.paths[i] = path
	}
	return nil
}

// needs reports whether this host must have a program.
func (j *job) needs(program int) bool {
	for _, h := range j.hosts {
		if h.runs(program) && (h.here || j.spec.Programs[program].Stage) {
			return true
		}
	}
	return false
}

// open starts the rendezvous. Only a host with ranks and this process on it needs a port.
func (j *job) open() (err error) {
	var listener net.Listener
	for _, h := range j.hosts {
		switch {
		case !h.here && j.self == nil:
			if j.self, err = openExecutable(); err != nil {
				return err
			}
			j.tunnels = spawn.New()
		case h.here:
			if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return fmt.Errorf("rendezvous: %w", err)
			}
			j.addr = listener.Addr().String()
		}
	}
	j.server = bootstrap.NewServer(j.size, j.secret, j.hooks())
	j.manager = j.newManager()
	if listener != nil {
		j.serve(listener)
	}
	return nil
}

// serve takes connections of ranks to the rendezvous.
func (j *job) serve(l net.Listener) {
	go j.server.Serve(context.Background(), l) //nolint:errcheck // ends with Close
}

// release frees everything once no rank is left. The error reports output that
// was lost.
func (j *job) release() error {
	close(j.over)
	j.input.close()
	j.server.Close() //nolint:errcheck // never fails
	j.manager.Close()
	j.eachAgent(agentEnd.Sweep)
	lost := j.output.finish()
	if j.errors != nil {
		j.errors.summarize(j.spec.Stderr)
	}
	j.eachAgent(agentEnd.Close)
	if j.tunnels != nil {
		j.tunnels.Stop()
		j.self.Close()
	}
	return lost
}

// eachAgent calls f for all agents at once.
func (j *job) eachAgent(f func(agentEnd)) {
	var all sync.WaitGroup
	for _, h := range j.hosts {
		if h.agent != nil {
			all.Go(func() { f(h.agent) })
		}
	}
	all.Wait()
}
