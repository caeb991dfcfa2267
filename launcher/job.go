package launcher

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/memory"
)

// sweepPatience bounds the sweep at the end of a job. A process outlasts it only
// if it cannot be killed.
const sweepPatience = 5 * time.Second

// A job is one Run.
type job struct {
	spec   Spec
	id     string
	host   string
	addr   string
	secret []byte
	size   int

	reservations *memory.Memfd // of memory by the ranks of this host
	server       *bootstrap.Server
	placement    *placement
	spawner      *spawner
	guardians    []*guardian
	input        *input
	output       *output
	errors       *finalErrors // nil: ranks print their errors themselves
	ranks        []*process
	events       chan event
	over         chan struct{} // closed when the launcher takes no more events

	supervision
}

// Run starts a job and returns when all of it has ended. The error is the
// launcher's own. The Result says how the ranks ended; its ExitCode is always
// valid. The end of ctx ends the job as its Timeout does.
func Run(ctx context.Context, spec Spec) (result Result, err error) {
	if err := spec.check(); err != nil {
		return Result{ExitCode: ExitInternal}, err
	}
	paths, err := resolve(spec.Programs)
	if err != nil {
		return failed(err)
	}
	j, err := newJob(spec)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if lost := j.release(); lost != nil && err == nil && result.ExitCode == 0 {
			result.ExitCode, err = ExitInternal, lost
		}
	}()
	return j.supervise(ctx, j.start(paths))
}

func failed(err error) (Result, error) { return Result{ExitCode: codeOf(err)}, err }

// codeOf returns the exit code for an error of the launcher.
func codeOf(err error) int {
	var start *StartError
	if errors.As(err, &start) {
		return start.Code
	}
	return ExitInternal
}

// resolve finds the programs relative to this process's working directory, not
// the ranks'.
func resolve(programs []Program) (paths []string, err error) {
	for _, p := range programs {
		path, err := exec.LookPath(p.Path)
		if errors.Is(err, exec.ErrDot) {
			err = fmt.Errorf("%w; write ./%s", err, p.Path)
		}
		if err == nil {
			path, err = filepath.Abs(path)
		}
		if err != nil {
			return nil, lookError(p.Path, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// newJob makes all parts of a job but the ranks.
func newJob(spec Spec) (j *job, err error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("name the job: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	j = &job{
		spec: spec, id: id.String(), host: host, size: spec.size(),
		secret: make([]byte, bootstrap.SecretSize),
		events: make(chan event, 64), over: make(chan struct{}),
	}
	rand.Read(j.secret)
	if j.placement, err = newPlacement(spec.Bind, "/sys/devices/system"); err != nil {
		return nil, err
	}
	if j.output, err = newOutput(&j.spec); err != nil {
		return nil, err
	}
	j.input = &input{spec: &j.spec, quit: j.over}
	if spec.Guardian {
		if j.guardians, err = startGuardians(j.id); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		dismiss(j.guardians)
		return nil, fmt.Errorf("rendezvous: %w", err)
	}
	if err := j.makeFiles(); err != nil {
		listener.Close()
		dismiss(j.guardians)
		return nil, err
	}
	j.addr = listener.Addr().String()
	j.server = bootstrap.NewServer(j.size, j.secret, j.hooks())
	go j.server.Serve(context.Background(), listener) //nolint:errcheck // ends with Close
	j.spawner = newSpawner()
	return j, nil
}

// makeFiles makes the files that ranks open by their paths.
func (j *job) makeFiles() (err error) {
	if j.reservations, err = memory.NewReservations(); err != nil {
		return err
	}
	if j.spec.OutputDir != "" || j.spec.Stderr == nil {
		return nil
	}
	if j.errors, err = newFinalErrors(j.size); err != nil {
		return errors.Join(err, j.reservations.Close())
	}
	return nil
}

// start starts the ranks, program by program. After an error j.ranks has the
// ranks that run.
func (j *job) start(paths []string) error {
	defer j.await()
	defer j.output.begin()
	for i, program := range j.spec.Programs {
		for range program.N {
			rank := len(j.ranks)
			p, err := j.launch(rank, rank, program, paths[i])
			if err != nil {
				return err
			}
			j.ranks = append(j.ranks, p)
		}
	}
	j.input.start()
	if j.spec.Started != nil {
		j.spec.Started()
	}
	return nil
}

// await turns the exits of all ranks that were started into events.
func (j *job) await() {
	for _, p := range j.ranks {
		go func() {
			status, err := p.wait()
			j.post(event{kind: exited, rank: p.rank, status: status, err: err})
		}()
	}
}

// release frees everything once no rank is left. The error reports output that
// was lost.
func (j *job) release() error {
	close(j.over)
	j.input.close()
	j.server.Close() //nolint:errcheck // never fails
	sweep(j.id, time.Now().Add(sweepPatience))
	lost := j.output.finish()
	if j.errors != nil {
		j.errors.summarize(j.spec.Stderr)
		j.errors.close()
	}
	dismiss(j.guardians)
	j.spawner.stop()
	j.reservations.Close() //nolint:errcheck // the ranks are gone
	return lost
}
