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
	terminating       // told by a signal to end
	killing           // SIGKILL was sent
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
	ended    bool           // the launcher itself ends the job: what ranks do now is no failure of theirs
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

// supervise runs until every rank that was started has ended. It ends them if not
// all were, as failure says.
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
	for j.alive > 0 {
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

// forgive gives the survivors of a failure time to end by themselves.
func (j *job) forgive() {
	if j.phase == running {
		j.phase = grace
		j.timer.set(orDefault(j.spec.Grace, defaultGrace))
	}
}

// end has the launcher end the job, for whatever reason.
func (j *job) end() {
	j.ended = true
	if j.phase < terminating {
		j.tell(syscall.SIGTERM)
	}
}

// tell sends the ranks a signal that asks them to end. The first one starts the
// time until SIGKILL, whether it is the launcher's or was passed on.
func (j *job) tell(sig syscall.Signal) {
	j.signalAll(sig)
	if j.phase < terminating {
		j.phase = terminating
		j.timer.set(orDefault(j.spec.KillWait, defaultKillWait))
	}
}

// escalate does what follows when the time of a phase is over.
func (j *job) escalate() {
	if j.phase < terminating {
		j.end()
	} else {
		j.slay()
	}
}

// slay kills the ranks that are left.
func (j *job) slay() {
	j.phase, j.ended = killing, true
	j.timer.off()
	for _, p := range j.ranks {
		if !p.ended {
			j.result.Killed = append(j.result.Killed, p.rank)
		}
	}
	j.signalAll(syscall.SIGKILL)
}

func (j *job) signalAll(sig syscall.Signal) {
	for _, p := range j.ranks {
		p.signal(sig)
	}
}

// forward passes a signal on. SIGINT and SIGTERM ask the ranks to end; the second
// of them kills.
func (j *job) forward(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	switch {
	case !ok:
	case sig == syscall.SIGTSTP:
		j.suspend()
	case sig != syscall.SIGINT && sig != syscall.SIGTERM:
		j.signalAll(sig)
	case j.stopping == 0:
		j.stopping = sig
		j.tell(sig)
	case j.phase < killing:
		j.slay()
	}
}

// suspend stops the ranks and this process until the shell continues it. Timers
// do not count that time.
func (j *job) suspend() {
	began := time.Now()
	j.signalAll(syscall.SIGTSTP)
	if err := Suspend(); err != nil && j.err == nil {
		j.err = err
	}
	j.signalAll(syscall.SIGCONT)
	stopped := time.Since(began)
	j.timer.putOff(stopped)
	j.limit.putOff(stopped)
}
