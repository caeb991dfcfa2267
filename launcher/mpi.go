//go:build linux

package launcher

import (
	"fmt"
	"net"

	"github.com/gopgas/gopgas/internal/pmi"
)

// Ranks that are programs of MPI. They join by PMI and not at the rendezvous. The goroutine of a rank's connection
// runs manage and posts events; the supervising loop takes these and calls exited, endManaged and abortMPI.

// newManager returns the process manager of the job, for ranks that are programs of MPI. A
// rank of gopgas joins the rendezvous instead. Both tell the supervising loop the same events.
func (j *job) newManager() *pmi.Server {
	nodes, programs := make([]int, j.size), make([]int, j.size)
	for number, h := range j.hosts {
		for _, r := range h.plan.Ranks {
			nodes[r.Rank], programs[r.Rank] = number, r.Program
		}
	}
	return pmi.NewServer(nodes, func(rank int) int { return programs[rank] }, pmi.Hooks{
		Started:   func(rank int) { j.post(event{kind: joined, rank: rank, mpi: true}) },
		Finalized: func(rank int) { j.post(event{kind: left, rank: rank}) },
		Aborted: func(rank, code int, message string) {
			j.post(event{kind: aborted, rank: rank, mpi: true, code: code, text: message})
		},
	})
}

// manage serves a rank's connection with the process manager.
func (j *job) manage(rank int, conn net.Conn) {
	if rank < 0 || rank >= j.size {
		conn.Close()
		return
	}
	j.post(event{kind: unmanaged, rank: rank, err: j.manager.Serve(rank, conn)})
}

// exited handles the end of a rank's process. A rank of MPI that exits with a code may have
// called MPI_Abort, which is still on its way through its connection then. The agent ends the
// connection behind that.
func (j *job) exited(p *process) {
	if p.mpi && !p.left && !p.aborted && !p.unmanaged && p.status.ExitStatus() > 0 {
		j.manager.RankEnded(p.rank) // it may be in a fence
		return
	}
	p.ended = true
	j.alive--
	j.judge(p)
	j.died(p, p.deathCause())
}

// endManaged handles the end of a rank's connection with the process manager.
func (j *job) endManaged(p *process, err error) {
	first := !p.unmanaged
	p.unmanaged = true
	if err != nil {
		j.note(err.Error())
	}
	if first && p.exited && !p.ended {
		j.exited(p)
	}
}

// A dialect names the calls with which a program begins and ends its part in a job.
type dialect struct{ begin, end string }

// speaks returns the dialect of ranks that joined by PMI, or of those of gopgas.
func speaks(mpi bool) dialect {
	if mpi {
		return dialect{"MPI_Init", "MPI_Finalize"}
	}
	return dialect{"runtime.Init", "Close"}
}

// abortMPI handles the call of MPI_Abort at a rank.
func (j *job) abortMPI(p *process, e event) {
	reason := fmt.Sprintf("called MPI_Abort with code %d", e.code)
	if e.text != "" {
		reason += ": " + e.text
	}
	p.aborted, p.abort = true, reason
	code := e.code & 0xff // as the kernel cuts the code of an exit
	if code == 0 {
		code = 1
	}
	j.fail(p, Failure{Code: code, Reason: reason})
}
