package launcher

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// An event is something that a rank did.
type event struct {
	kind    eventKind
	rank    int
	status  syscall.WaitStatus // exited
	err     error              // exited
	text    string             // aborted: cause; reported: name
	payload []byte             // reported
}

type eventKind uint8

const (
	exited eventKind = iota
	joined
	left
	aborted
	reported
	lost
	silent
)

// lostWait is how long the exit of a process may come after the loss of its
// connection. The exit says more.
const lostWait = 500 * time.Millisecond

// A phase of a job only ever moves forward.
type phase uint8

const (
	running     phase = iota
	grace             // told of the failure, may end by itself
	terminating       // SIGTERM was sent
	killing           // SIGKILL was sent
)

// supervision is the state of the loop that watches the ranks.
type supervision struct {
	phase    phase
	timer    *time.Timer // moves to the next phase
	alive    int
	joins    int
	result   Result
	stopping syscall.Signal // the last SIGINT or SIGTERM that was passed on
	err      error
}

// hooks turns what the rendezvous sees into events. A goodbye becomes an event
// before the rank hears that it was taken, and so before the rank's exit.
func (j *job) hooks() bootstrap.Hooks {
	return bootstrap.Hooks{
		Joined:  func(rank int) { j.post(event{kind: joined, rank: rank}) },
		Left:    func(rank int) { j.post(event{kind: left, rank: rank}) },
		Aborted: func(rank int, cause string) { j.post(event{kind: aborted, rank: rank, text: cause}) },
		Reported: func(rank int, name string, payload []byte) {
			j.post(event{kind: reported, rank: rank, text: name, payload: payload})
		},
		Lost: func(rank int, _ error) { j.post(event{kind: lost, rank: rank}) },
	}
}

func (j *job) post(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}

// supervise runs until every rank has ended.
func (j *job) supervise(ctx context.Context) (Result, error) {
	j.alive = len(j.ranks)
	j.timer = time.NewTimer(0)
	j.timer.Stop()
	defer j.timer.Stop()
	var timeout <-chan time.Time
	if j.spec.Timeout > 0 {
		timeout = time.After(j.spec.Timeout)
	}
	done := ctx.Done()
	for j.alive > 0 {
		select {
		case e := <-j.events:
			j.handle(e)
		case sig := <-j.spec.Signals:
			j.forward(sig)
		case <-j.timer.C:
			j.enter(j.phase + 1)
		case <-timeout:
			j.result.TimedOut = true
			j.enter(terminating)
		case <-done:
			done = nil
			j.err = context.Cause(ctx)
			j.enter(terminating)
		}
	}
	j.drain()
	j.result.ExitCode = j.exitCode()
	return j.result, j.err
}

// drain handles what was posted before the last exit.
func (j *job) drain() {
	for {
		select {
		case e := <-j.events:
			j.handle(e)
		default:
			return
		}
	}
}

func (j *job) handle(e event) {
	p := j.ranks[e.rank]
	switch e.kind {
	case exited:
		p.ended, p.status = true, e.status
		j.alive--
		if e.err != nil {
			j.err = e.err
		}
		j.judge(p)
		j.server.RankDied(p.rank, p.epitaph(j.host))
	case joined:
		p.joined = true
		j.joins++
		for _, other := range j.ranks { // the first join changes what an exit without one means
			j.judge(other)
		}
	case left:
		p.left = true
	case aborted:
		p.aborted, p.abort = true, e.text
		j.fail(p, Failure{Code: 1, Reason: fmt.Sprintf("aborted: %s", e.text)})
	case lost:
		time.AfterFunc(lostWait, func() { j.post(event{kind: silent, rank: e.rank}) })
	case silent:
		j.mourn(p)
	case reported:
		j.result.Reports = append(j.result.Reports, Report{Rank: e.rank, Name: e.text, Payload: e.payload})
	}
}

// judge decides whether a rank that has ended has failed.
func (j *job) judge(p *process) {
	if !p.ended {
		return
	}
	code, sig, reason := describe(p.status)
	switch {
	case p.failed:
		j.setCode(p.rank, code)
	case code != 0:
		j.fail(p, Failure{Code: code, Signal: sig, Reason: reason})
	case p.joined && !p.left:
		j.fail(p, Failure{Code: 1, Reason: "exited without Close"})
	case !p.joined && j.joins > 0:
		j.fail(p, Failure{Code: 1, Reason: "exited without ever calling runtime.Init, which others wait in"})
	}
}

// epitaph is what the other ranks are told about one that has ended.
func (p *process) epitaph(host string) string {
	code, _, reason := describe(p.status)
	switch {
	case p.aborted:
		reason = "aborted: " + p.abort
	case code == 0 && !p.joined:
		reason = "exited without ever calling runtime.Init"
	case code == 0:
		reason = "exited without Close"
	}
	return reason + " on " + host
}

// fail records a failure and begins the end of the job. What ranks do once
// they were told to end is no failure of theirs.
func (j *job) fail(p *process, f Failure) {
	p.failed = true
	if j.phase < terminating {
		f.Rank, f.Host = p.rank, j.host
		j.result.Failures = append(j.result.Failures, f)
	}
	if !j.spec.KeepGoing {
		j.enter(grace)
	}
}

// mourn gives up a rank whose connection has broken while its process lives
// on: a shell, perhaps, around the program that died. It cannot join again.
func (j *job) mourn(p *process) {
	if p.ended || p.failed {
		return
	}
	const reason = "lost its connection to grun without Close"
	j.server.RankDied(p.rank, reason+" on "+j.host)
	j.fail(p, Failure{Code: 1, Reason: reason})
}

// setCode gives a rank that had failed before it ended its exit code.
func (j *job) setCode(rank, code int) {
	for i, f := range j.result.Failures {
		if f.Rank == rank && code != 0 {
			j.result.Failures[i].Code = code
		}
	}
}

// enter moves to a later phase.
func (j *job) enter(next phase) {
	if next <= j.phase {
		return
	}
	j.phase = next
	switch next {
	case grace:
		j.timer.Reset(orDefault(j.spec.Grace, defaultGrace))
	case terminating:
		j.signalAll(syscall.SIGTERM)
		j.timer.Reset(orDefault(j.spec.KillWait, defaultKillWait))
	case killing:
		j.timer.Stop()
		j.signalAll(syscall.SIGKILL)
	}
}

func (j *job) signalAll(sig syscall.Signal) {
	for _, p := range j.ranks {
		p.signal(sig)
	}
}

// forward passes a signal on. A second SIGINT or SIGTERM kills.
func (j *job) forward(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	if sig == syscall.SIGINT || sig == syscall.SIGTERM {
		if j.stopping != 0 {
			j.enter(killing)
			return
		}
		j.stopping = sig
	}
	j.signalAll(sig)
}

func (j *job) exitCode() int {
	switch {
	case j.result.TimedOut:
		return ExitTimeout
	case len(j.result.Failures) > 0:
		return j.result.Failures[0].Code
	case j.err != nil:
		return ExitInternal
	case j.phase == killing && j.stopping != 0:
		return exitSignal + int(j.stopping)
	}
	return 0
}
