//go:build linux

package launcher

import (
	"os"
	"syscall"
	"time"
)

// deathWait is the time from SIGKILL by which hosts report the deaths of their ranks.
const deathWait = 5 * time.Second

// A phase of a job only moves forward.
type phase uint8

const (
	running     phase = iota
	grace             // ranks know of the failure, and may end by themselves
	terminating       // a signal has asked the ranks to end
	killing           // SIGKILL was sent
)

// grantGrace gives the survivors of a failure time to end by themselves.
func (j *job) grantGrace() {
	if j.phase == running {
		j.phase = grace
		j.timer.set(orDefault(j.spec.Grace, defaultGrace))
	}
}

// end has the launcher end the job: after a timeout, the end of the context, or a
// program that did not start.
func (j *job) end() {
	j.ended = true
	if j.phase < terminating {
		j.tell(syscall.SIGTERM)
	}
}

// tell sends the ranks a signal that asks them to end. The first one starts the
// time until SIGKILL, whether the launcher or its user sent it.
func (j *job) tell(sig syscall.Signal) {
	if j.starting != nil {
		j.starting(errJobEnds)
	}
	j.signalAll(sig)
	if j.phase < terminating {
		j.phase = terminating
		j.timer.set(orDefault(j.spec.KillWait, defaultKillWait))
	}
}

// escalate moves to the next phase when the time of a phase is over.
func (j *job) escalate() {
	switch {
	case j.phase < terminating:
		j.end()
	case j.phase < killing:
		j.killAll()
	default:
		j.abandon()
	}
}

// abandon ends the connections to hosts that do not report the deaths of their ranks.
func (j *job) abandon() {
	j.timer.off()
	for _, h := range j.hosts {
		if h.remote != nil && !h.lost {
			go h.remote.session.Close() // loseHost follows
		}
	}
}

// killAll kills the ranks that are left.
func (j *job) killAll() {
	j.phase, j.ended = killing, true
	j.timer.set(deathWait)
	for _, p := range j.ranks {
		if j.begun && !p.ended && !p.exited {
			j.result.Killed = append(j.result.Killed, p.rank)
		}
	}
	j.signalAll(syscall.SIGKILL)
}

// signalAll passes a signal on to the ranks of all hosts that are reachable.
func (j *job) signalAll(sig syscall.Signal) {
	for _, h := range j.hosts {
		switch {
		case h.lost:
		case h.remote != nil: // it heeds a stop of grun before it has ranks, too
			h.remote.Signal(sig)
		case j.begun:
			h.agent.Signal(sig)
		}
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
		j.killAll()
	}
}

// suspend stops the ranks of all hosts and this process until the shell continues it. Timers
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
	j.late.putOff(stopped)
}
