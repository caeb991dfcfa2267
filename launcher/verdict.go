//go:build linux

package launcher

import "time"

// lostWait is the time by which the exit of a process may follow the loss of its
// connection. The exit tells more.
const lostWait = 500 * time.Millisecond

// judge decides whether a rank that has ended has failed.
func (j *job) judge(p *process) {
	if !p.ended || p.absent || p.lost {
		return
	}
	code, sig, reason := describe(p.status)
	switch {
	case p.failed:
		if !j.ended { // else the launcher's own signal set the code
			j.setCode(p.rank, code)
		}
	case code != 0:
		j.fail(p, Failure{Code: code, Signal: sig, Reason: reason})
	case p.joined && !p.left:
		j.fail(p, Failure{Code: 1, Reason: "exited without " + speaks(p.mpi).end})
	case !p.joined && j.joins > 0:
		j.fail(p, Failure{Code: 1, Reason: "exited without ever calling " + speaks(j.mpi).begin + ", in which other ranks wait"})
	}
}

// deathCause returns the cause of death that the rendezvous announces to the other
// ranks.
func (p *process) deathCause() string {
	code, _, reason := describe(p.status)
	switch {
	case p.aborted:
		reason = "aborted: " + p.abort
	case code == 0 && !p.joined:
		reason = "exited without ever calling runtime.Init"
	case code == 0:
		reason = "exited without Close"
	}
	return reason + " on " + p.host.name
}

// fail records a failure and begins the end of the job.
func (j *job) fail(p *process, f Failure) {
	p.failed = true
	if !j.ended {
		f.Rank, f.Host = p.rank, p.host.name
		j.result.Failures = append(j.result.Failures, f)
	}
	if !j.spec.KeepGoing {
		j.grantGrace()
	}
}

// declareDead declares a rank dead whose connection has broken while its process lives
// on: a shell, perhaps, around the program that died. It cannot join again.
func (j *job) declareDead(p *process) {
	if p.ended || p.failed {
		return
	}
	const reason = "lost its connection to grun without Close"
	j.server.RankDied(p.rank, reason+" on "+p.host.name)
	j.fail(p, Failure{Code: 1, Reason: reason})
}

// setCode sets the exit code of a rank that had failed before its process ended.
func (j *job) setCode(rank, code int) {
	for i, f := range j.result.Failures {
		if f.Rank == rank && code != 0 {
			j.result.Failures[i].Code = code
		}
	}
}

// exitCode returns the launcher's exit code.
func (j *job) exitCode() int {
	switch {
	case j.result.TimedOut:
		return ExitTimeout
	case len(j.result.Failures) > 0:
		return j.result.Failures[0].Code
	case j.err != nil:
		return codeOf(j.err)
	case j.stopping != 0 && (j.phase == killing || !j.begun):
		return exitSignal + int(j.stopping)
	}
	return 0
}
