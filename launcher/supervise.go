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
