package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/memory"
)

// defaultStartWait is the start timeout of a job without a launcher: time to type the
// commands of a few ranks.
const defaultStartWait = 5 * time.Minute

// place holds the environment of a rank before it joins, and the connection to its job's
// launcher.
type place struct {
	env    bootstrap.Env
	conn   func(ctx context.Context) (net.Conn, error) // instead of env.Addr
	local  *localWire
	server *bootstrap.Server // that ends with the job
}

// membership holds the place of a rank that has joined. Its env is complete.
type membership struct {
	place
	conn     *bootstrap.Conn
	reserved *memory.Memfd // see Job
}

// release closes the server of a process that could not join, because of err.
func (p place) release(err error) error {
	if p.server == nil {
		return err
	}
	return errors.Join(err, p.server.Close())
}

// wait returns the bound of the start; 0: none.
func (p place) wait(o *options) time.Duration {
	if p.env.Hosted {
		return cmp.Or(o.startWait, defaultStartWait)
	}
	return o.startWait
}

// join joins the job. Where the environment does not say so, the ranks find out which of
// them share a host.
func (p place) join(ctx context.Context, o *options) (m *membership, err error) {
	p.env.TLS = o.tls
	m = &membership{place: p}
	if p.conn == nil {
		m.conn, m.server, err = m.env.Enter(ctx, p.wait(o))
	} else {
		var conn net.Conn
		if conn, err = p.conn(ctx); err == nil {
			m.conn, err = bootstrap.NewConn(ctx, conn, p.env.Secret, bootstrap.Joining{Rank: p.env.Rank, TLS: o.tls})
		}
	}
	if err != nil {
		return nil, cannotJoin(m.env, err)
	}
	m.env.Rank = m.conn.Rank()
	if m.env.LocalSize > 0 {
		return m, nil
	}
	if err := m.findHost(ctx); err != nil {
		return nil, m.giveUp(ctx, cannotJoin(m.env, err))
	}
	twoThreads()
	return m, nil
}

// twoThreads lets a rank that is bound to one core run two goroutines at a time, as grun
// does: one P would let a polling rank starve its own progress.
func twoThreads() {
	if os.Getenv("GOMAXPROCS") == "" && goruntime.GOMAXPROCS(0) < 2 {
		goruntime.GOMAXPROCS(2)
	}
}

// giveUp leaves the job because of err. The rank counts as dead.
func (m *membership) giveUp(ctx context.Context, err error) error {
	client := m.conn.Client(bootstrap.Events{})
	errs := []error{err}
	if bad := client.Die(context.Background(), couldNotJoin+err.Error()); bad != nil && !errors.Is(bad, bootstrap.ErrLost) {
		errs = append(errs, bad)
	}
	errs = append(errs, closeServer(ctx, m.server, 0, m.env.Manager), takeLeave(m.env.Manager))
	if m.reserved != nil {
		errs = append(errs, m.reserved.Close())
	}
	return errors.Join(errs...)
}

// lastWords is the time in which other ranks may still take the messages of a rank 0 whose context
// has ended. In this time a process manager may also take the output, before an abort.
const lastWords = time.Second

// closeServer serves the rendezvous in this process until all ranks have left or are
// dead, and closes it. It waits for the peer timeout at most, and for lastWords after the
// end of ctx. If ranks do not leave, a process manager ends them, and this process.
func closeServer(ctx context.Context, server *bootstrap.Server, peerTimeout time.Duration, manager *bootstrap.Manager) error {
	if server == nil {
		return nil
	}
	bound := cmp.Or(peerTimeout, bootstrap.DefaultSilence)
	waiting, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	defer stop()
	left := server.Drain(waiting)
	err := server.Close()
	if len(left) == 0 || ctx.Err() != nil {
		return err
	}
	late := &RankError{Rank: left[0], Kind: ErrUnreachable,
		Cause: fmt.Sprintf("%s did not leave the job within %v after rank 0, which hosts the rendezvous", bootstrap.Ranks(left), bound)}
	if manager != nil {
		complain(late.Error() + ": the process manager ends the job")
		time.Sleep(lastWords) // a process manager may drop words that it has not read when it aborts
		manager.Abort(late.Error())
	}
	return errors.Join(err, late)
}

// takeLeave tells the process manager that this rank may end. A rank that does not take leave
// has failed, for most process managers.
func takeLeave(manager *bootstrap.Manager) error {
	ctx, cancel := context.WithTimeout(context.Background(), bootstrap.DefaultSilence)
	defer cancel()
	return manager.Finalize(ctx)
}

// describe returns the line of GRUN_VERBOSE.
func (m *membership) describe(j *Job) string {
	e := &m.env
	name, _ := os.Hostname()
	how := "no launcher was found: no " + bootstrap.EnvJobID + ", no " + bootstrap.EnvAddr
	switch {
	case e.Launcher != "" && e.Addr == "":
		how = fmt.Sprintf("started by %s, alone", e.Launcher)
	case e.Launcher != "":
		how = fmt.Sprintf("started by %s, joined at %s", e.Launcher, e.Addr)
	}
	if e.Hosted {
		how += ", rank 0 hosts the rendezvous"
	}
	if part := bootstrap.Incomplete(); part != "" {
		how += "; ignored " + part
	}
	return fmt.Sprintf("rank %d of %d on %s: local rank %d of %d, %d cores, GOMAXPROCS %d, providers %s; %s",
		e.Rank, e.Size, name, e.LocalRank, e.LocalSize, j.cores, goruntime.GOMAXPROCS(0), j.reaches(), how)
}
