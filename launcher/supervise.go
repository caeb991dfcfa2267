//go:build linux

package launcher

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/launcher/internal/agent"
	"github.com/gopgas/gopgas/launcher/internal/wire"
)

// An event is something that a rank or its process did.
type event struct {
	kind    eventKind
	rank    int
	text    string       // aborted: cause; reported: name
	payload []byte       // reported
	host    *host        // ofAgent, hostLost
	message wire.Message // ofAgent
	err     error        // assembled, hostLost, outputLost, crowded, unmanaged
	mpi     bool         // joined, aborted: by PMI
	code    int          // aborted by PMI
}

// An eventKind says what has happened to a rank or host.
type eventKind uint8

const (
	joined eventKind = iota
	left
	aborted
	reported
	lost
	silent
	assembled // all hosts are ready, or not
	ofAgent   // a message
	hostLost
	outputLost
	crowded   // a connection of a rank waits until grun can take it
	unmanaged // the connection of a rank with the process manager has ended
)

// supervision is the state of the loop that watches the ranks.
type supervision struct {
	phase    phase
	timer    *alarm                  // moves to the next phase
	limit    *alarm                  // Spec.Timeout
	late     *alarm                  // names ranks that have not joined
	starting context.CancelCauseFunc // ends assemble; nil: it has ended
	begun    bool                    // the agents start their ranks
	alive    int
	joins    int
	mpi      bool // a rank joined by PMI
	result   Result
	stopping syscall.Signal // the first SIGINT or SIGTERM that was passed on
	ended    bool           // the launcher itself ends the job: ranks that end now have not failed
	reading  int            // agents that read errors which end ranks
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
		Lost:    func(rank int, _ error) { j.post(event{kind: lost, rank: rank}) },
		Crowded: func(err error) { j.post(event{kind: crowded, err: err}) },
	}
}

// post hands an event to the supervisor. It drops the event once the job is over.
func (j *job) post(e event) {
	select {
	case j.events <- e:
	case <-j.over:
	}
}

// loseOutput ends the job because a part of the ranks' output was lost. It does not wait: the
// goroutine that takes events may be the one that printed.
func (j *job) loseOutput(err error) { go j.post(event{kind: outputLost, err: err}) }

// supervise runs until every rank has ended. After a failure to start, it ends the ranks
// that run.
func (j *job) supervise(ctx context.Context) (Result, error) {
	j.timer, j.limit, j.late = newAlarm(), newAlarm(), newAlarm()
	defer j.timer.off()
	defer j.limit.off()
	defer j.late.off()
	if j.spec.Timeout > 0 {
		j.limit.set(j.spec.Timeout)
	}
	done := ctx.Done()
	j.startAll()
	for j.starting != nil || j.alive > 0 || j.reading > 0 {
		select {
		case e := <-j.events:
			j.handle(e)
		case sig := <-j.spec.Signals:
			j.forward(sig)
		case <-j.timer.C:
			j.escalate()
		case <-j.late.C:
			j.late.off()
			j.nameLate()
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

// handle moves the job by one event. Only the goroutine of supervise calls it.
func (j *job) handle(e event) {
	mutant.Hesitate(mutant.Message)
	switch e.kind {
	case assembled:
		j.assembled(e.err)
	case ofAgent:
		j.hear(e.host, e.message)
	case hostLost:
		j.loseHost(e.host, e.err)
	case outputLost:
		if j.err == nil {
			j.err = e.err
		}
		j.grantGrace()
	case crowded:
		j.note(fmt.Sprintf("a rank waits, since grun cannot take its connection: %v", agent.Remedy(e.err)))
	default:
		j.follow(j.ranks[e.rank], e)
	}
}

// follow handles an event of a rank.
func (j *job) follow(p *process, e event) {
	switch e.kind {
	case joined:
		if p.joined {
			return
		}
		p.joined, p.mpi = true, e.mpi
		j.mpi = j.mpi || e.mpi
		j.joins++
		j.awaitJoins()
		for _, other := range j.ranks { // after the first join an exit without one is a failure
			j.judge(other)
		}
	case left:
		p.left = true
	case aborted:
		if e.mpi {
			j.abortMPI(p, e)
			return
		}
		p.aborted, p.abort = true, e.text
		j.fail(p, Failure{Code: 1, Reason: fmt.Sprintf("aborted: %s", e.text)})
	case lost:
		time.AfterFunc(lostWait, func() { j.post(event{kind: silent, rank: e.rank}) })
	case unmanaged:
		j.endManaged(p, e.err)
	case silent:
		j.declareDead(p)
	case reported:
		j.result.Reports = append(j.result.Reports, Report{Rank: e.rank, Name: e.text, Payload: e.payload})
	}
}
