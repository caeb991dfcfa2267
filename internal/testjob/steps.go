package testjob

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// RunLocal is runtime.RunLocal under a watchdog that watches the steps of all ranks.
func RunLocal(ctx context.Context, n int, body runtime.Body, opts ...runtime.Option) error {
	return RunBy(ctx, func(ctx context.Context, body runtime.Body) error { return runtime.RunLocal(ctx, n, body, opts...) }, body)
}

// RunBy is RunLocal with a function run that runs the ranks of this process.
func RunBy(ctx context.Context, run func(context.Context, runtime.Body) error, body runtime.Body) error {
	var s steps
	return testwatch.Run(ctx, func(ctx context.Context) error { return run(ctx, s.counted(body)) }, s.sum)
}

// steps counts the steps of the ranks of this process: those of their fabrics, and
// the beginning and end of a body.
type steps struct {
	bodies atomic.Uint64
	mu     sync.Mutex
	ranks  []func() uint64
}

// counted returns a body that adds its rank's steps.
func (s *steps) counted(body runtime.Body) runtime.Body {
	return func(ctx context.Context, job *runtime.Job) error {
		s.mu.Lock()
		s.ranks = append(s.ranks, team.Of(job.World()).Steps)
		s.mu.Unlock()
		s.bodies.Add(1)
		defer s.bodies.Add(1)
		return body(ctx, job)
	}
}

// sum returns a number that grows while any rank makes progress: a watchdog's steps.
func (s *steps) sum() uint64 {
	s.mu.Lock()
	ranks := s.ranks
	s.mu.Unlock()
	n := s.bodies.Load()
	for _, of := range ranks { // without the mutex: the count of a rank that is stuck may wait
		n += of()
	}
	return n
}

// envSteps names the file in which the processes of a job share their steps.
const envSteps = "GOPGAS_TESTJOB_STEPS"

// A stepsFile is that file: 8 bytes for each rank, and 8 that a rank writes after
// its watchdog has ended its context. The test's watchdog counts those, too, so
// that it leaves ranks the time to show where they wait.
type stepsFile struct {
	file  *os.File
	ranks int
}

// newStepsFile makes the file of a job.
func newStepsFile(t testing.TB, ranks int) *stepsFile {
	file, err := os.Create(filepath.Join(t.TempDir(), "steps"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	require.NoError(t, file.Truncate(int64(8*(ranks+1))))
	return &stepsFile{file, ranks}
}

func (s *stepsFile) ofRanks() uint64 { return s.sum(s.ranks) }

func (s *stepsFile) all() uint64 { return s.sum(s.ranks + 1) }

// sum returns the steps of all processes of the job.
func (s *stepsFile) sum(words int) (n uint64) {
	b := make([]byte, 8*words)
	_, _ = s.file.ReadAt(b, 0) // an unreadable count stands still
	for ; len(b) > 0; b = b[8:] {
		n += binary.LittleEndian.Uint64(b)
	}
	return n
}

// tell writes one of the words.
func (s *stepsFile) tell(word int, n uint64) {
	_, _ = s.file.WriteAt(binary.LittleEndian.AppendUint64(nil, n), int64(8*word))
}

// watched calls f with a context for this process, a rank of a job. The context ends when no
// rank makes a step, or where ranks share no file of steps, when this rank makes none.
func (s *steps) watched(f func(ctx context.Context) error) error {
	env, ok, err := bootstrap.FromEnv()
	if err == nil && !ok {
		err = errors.New("a body runs in a job only")
	}
	if err != nil {
		return err
	}
	path, ok := os.LookupEnv(envSteps)
	if !ok {
		return testwatch.Run(context.Background(), f, s.sum)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	shared := &stepsFile{file, env.Size}
	return testwatch.Run(context.Background(), func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), testwatch.ErrStuck) {
				shared.tell(env.Size, 1)
			}
		})()
		return f(ctx)
	}, func() uint64 {
		shared.tell(env.Rank, s.sum())
		return shared.ofRanks()
	})
}
