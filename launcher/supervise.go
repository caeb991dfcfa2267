package launcher

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// An event is something that a rank or its process did.
type event struct {
	kind    eventKind
	rank    int
	status  syscall.WaitStatus // exited
	err     error              // exited
	text    string             // aborted: cause; reported: name; finalError: its text
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
	finalError
	noMoreErrors // of any rank
)

// supervision is the state of the loop that watches the ranks.
type supervision struct {
	phase    phase
	timer    *alarm // moves to the next phase
	limit    *alarm // Spec.Timeout
	alive    int
	joins    int
	result   Result
	stopping syscall.Signal // the first SIGINT or SIGTERM that was passed on
	ended    bool           // the launcher itself ends the job: ranks that end now have not failed
	reading  bool           // of the errors that end ranks
	err      error
}

// hooks turns the callbacks of the rendezvous into events. A goodbye becomes an
// event before the rank gets its acknowledgement, and so before the rank's exit.
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

// supervise runs until every rank that was started has ended. After a failure to
// start, it ends the ranks that run.
func (j *job) supervise(ctx context.Context, failure error) (Result, error) {
	j.alive = len(j.ranks)
	j.timer, j.limit = newAlarm(), newAlarm()
	defer j.timer.off()
	defer j.limit.off()
	if j.spec.Timeout > 0 {
		j.limit.set(j.spec.Timeout)
	}
	if j.err = failure; failure != nil {
		j.end()
	}
	done := ctx.Done()
	j.readErrors()
	for j.alive > 0 || j.reading {
		select {
		case e := <-j.events:
			j.handle(e)
		case sig := <-j.spec.Signals:
			j.forward(sig)
		case <-j.timer.C:
			j.escalate()
		case <-j.limit.C:
			j.limit.off()
			j.result.TimedOut = true
			j.end()
		case <-done:
			done = nil
			j.err = context.Cause(ctx)
			j.end()
		}
	}
	j.drain()
	j.result.ExitCode = j.exitCode()
	return j.result, j.err
}

// readErrors turns the errors that end ranks into events, until all ranks have ended.
func (j *job) readErrors() {
	if j.errors == nil {
		return
	}
	j.reading = true
	go j.errors.read(j.post)
	j.endErrors()
}

// endErrors ends the reading of errors if no rank is left.
func (j *job) endErrors() {
	if j.alive == 0 && j.errors != nil {
		j.errors.end()
	}
}

// drain handles the events posted before the last exit.
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
	switch e.kind {
	case finalError:
		if j.errors.add(e.rank, e.text) {
			j.output.printFor(e.rank, e.text)
		}
	case noMoreErrors:
		j.reading = false
	default:
		j.follow(j.ranks[e.rank], e)
	}
}

// follow handles an event of a process.
func (j *job) follow(p *process, e event) {
	switch e.kind {
	case exited:
		p.ended, p.status = true, e.status
		j.alive--
		if e.err != nil {
			j.err = e.err
		}
		j.judge(p)
		j.server.RankDied(p.rank, p.deathCause(j.host))
		j.endErrors()
	case joined:
		p.joined = true
		j.joins++
		for _, other := range j.ranks { // after the first join an exit without one is a failure
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
		j.declareDead(p)
	case reported:
		j.result.Reports = append(j.result.Reports, Report{Rank: e.rank, Name: e.text, Payload: e.payload})
	}
}
