//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// news is a line that a rank prints for the test.
type news struct {
	What  string   `json:"what"`            // "ready", "round", or the name of an operation that failed
	Kinds []string `json:"kinds,omitempty"` // names of the errors that it returned
	Rank  int      `json:"rank"`            // that the error names, or -1
	Text  string   `json:"text,omitempty"`
}

const (
	newsPrefix  = "NEWS "
	roundPrefix = newsPrefix + `{"what":"round"`
)

func (n news) print() {
	line, _ := json.Marshal(n) // strings and a number
	fmt.Printf("%s%s\n", newsPrefix, line)
}

// kinds are the errors that a program may see, and their names in the tables.
var kinds = []struct {
	name string
	err  error
}{
	{"dead", runtime.ErrRankDead}, {"unreachable", runtime.ErrUnreachable}, {"broken", runtime.ErrTeamBroken},
	{"launcher", runtime.ErrLauncherLost}, {"aborted", runtime.ErrAborted}, {"exhausted", runtime.ErrExhausted},
	{"closed", runtime.ErrClosed}, {"stuck", testwatch.ErrStuck},
}

func newsOf(what string, err error) news {
	n := news{What: what, Rank: -1, Text: err.Error()}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			n.Kinds = append(n.Kinds, k.name)
		}
	}
	var of *runtime.RankError
	if errors.As(err, &of) {
		n.Rank = of.Rank
	}
	return n
}

// runProgram runs this process as a rank of the named program, and returns its exit code.
func runProgram(name string) int {
	p := &program{passed: map[int]int{}}
	ctx, stop := testwatch.With(context.Background(), p.steps.Load)
	defer stop()
	run := map[string]runtime.Body{"all": p.all, "fill": p.fill, "signals": p.signals}[name]
	if err := runtime.Run(ctx, run); err != nil {
		newsOf("end", err).print()
		return 1
	}
	return 0
}

// A program runs operations until the test ends its input, or one of them fails.
type program struct {
	steps atomic.Uint64
	over  atomic.Bool // the input has ended

	mu     sync.Mutex
	passed map[int]int // number of operations that have made a round's steps
}

// pauseOf is the time between two steps of an operation: there are more of them than cores.
const pauseOf = 3 * time.Millisecond

// roundOf is the number of steps of a round.
const roundOf = 2

// round tells the test when all operations have made the steps of another round.
func (p *program) round(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passed[number]++; p.passed[number] == len(operations) {
		delete(p.passed, number)
		news{What: "round", Rank: number}.print()
	}
}

// atFirst is the number of steps after which an operation counts as running.
const atFirst = 3

// all runs every operation at once. An operation that fails tells the test, and the
// others go on. The body returns after the end of the input.
func (p *program) all(ctx context.Context, job *runtime.Job) error {
	var started, running sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for _, o := range operations {
		team, err := job.World().Split(ctx, 0, 0)
		if err != nil {
			return fmt.Errorf("team of %s: %w", o.name, err)
		}
		step, check, err := o.open(ctx, team)
		if err != nil {
			return fmt.Errorf("opening %s: %w", o.name, err)
		}
		started.Add(1)
		running.Go(func() {
			if err := p.repeat(ctx, started.Done, step, check); err != nil {
				newsOf(o.name, err).print()
				mu.Lock()
				failed = append(failed, fmt.Errorf("%s: %w", o.name, err))
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, os.Stdin) // its end counts
		p.over.Store(true)
	}()
	started.Wait()
	news{What: "ready", Rank: -1}.print()
	running.Wait()
	for waiting := true; waiting; { // for the test, which has imposed a fault
		select {
		case <-ended:
			waiting = false
		case <-time.After(100 * time.Millisecond):
			p.steps.Add(1) // the test watches over this wait
		}
	}
	return errors.Join(failed...)
}

// signals tells the test of the first SIGUSR1, and how many there were at the first SIGUSR2.
func (p *program) signals(ctx context.Context, _ *runtime.Job) error {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	news{What: "ready", Rank: -1}.print()
	for count := 0; ; {
		select {
		case sig := <-signals:
			if sig == syscall.SIGUSR2 {
				news{What: "count", Rank: -1, Text: fmt.Sprintf("%d times", count)}.print()
				return nil
			}
			if count++; count == 1 {
				news{What: "signaled", Rank: -1}.print()
			}
		case <-time.After(100 * time.Millisecond):
			p.steps.Add(1) // the test watches over this wait
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// repeat makes steps until the input has ended, then the check. It calls started after
// the first steps, or after a failure.
func (p *program) repeat(ctx context.Context, started func(), step func(ctx context.Context, i int, last bool) (more bool, err error),
	check func(ctx context.Context) error) error {
	started = sync.OnceFunc(started)
	defer started()
	for i := 1; ; i++ {
		more, err := step(ctx, i, p.over.Load())
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		p.steps.Add(1)
		if i == atFirst {
			started()
		}
		if i%roundOf == 0 {
			p.round(i / roundOf)
		}
		if !more {
			return check(ctx)
		}
		time.Sleep(pauseOf)
	}
}

// envFill is the number of bytes that a rank of the program fill allocates.
const envFill = "GOPGAS_FAULTS_FILL"

// fill allocates more than there is at some rank, reports the error, and shows that the ranks can go on.
func (p *program) fill(ctx context.Context, job *runtime.Job) error {
	bytes, err := strconv.Atoi(os.Getenv(envFill))
	if err != nil {
		return err
	}
	team, err := job.World().Split(ctx, 0, 0) // a failed call breaks its team
	if err != nil {
		return err
	}
	if _, err = window.AllocateV[byte](ctx, team, bytes); err == nil {
		return errors.New("an allocation beyond the memory succeeded")
	}
	newsOf("fill", err).print()
	_, err = allocate(ctx, job.World(), 1)
	return err
}

// has reports whether the error of n has one of the kinds.
func (n news) has(wanted string) bool {
	return slices.ContainsFunc(strings.Fields(wanted), func(k string) bool { return slices.Contains(n.Kinds, k) })
}
