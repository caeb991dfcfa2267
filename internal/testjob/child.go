package testjob

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/runtime"
)

// runBody runs the body of this rank of a job of processes. It returns the exit
// code.
func runBody(name string, bodies map[string]Body) int {
	body, ok := bodies[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "no body %q in this test binary\n", name)
		return 2
	}
	var s steps
	err := s.watched(func(ctx context.Context) error {
		return runtime.Run(ctx, s.counted(func(ctx context.Context, job *runtime.Job) error {
			return guard(func(t require.TestingT) {
				r := newRank(t, job)
				r.die = func() { _ = unix.Kill(os.Getpid(), unix.SIGKILL) }
				body(ctx, r)
			})
		}))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// guard runs f and returns the first assertion that failed in it, if any.
func guard(f func(require.TestingT)) error {
	a := &assertions{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(a)
	}()
	<-done
	return a.err
}

// assertions stands for a testing.T in a process that runs no tests.
type assertions struct {
	mu  sync.Mutex
	err error
}

// Errorf keeps the first failure of the rank.
func (a *assertions) Errorf(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = fmt.Errorf(format, args...)
	}
}

// FailNow ends the goroutine that asserted.
func (a *assertions) FailNow() { goruntime.Goexit() }
