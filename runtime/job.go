package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Job is a running job as one rank sees it.
type Job struct {
	opts     options
	host     string // name of this rank's host
	cores    int    // that its ranks share
	bound    int    // cores to which this rank is bound; 0: all of them
	oneCore  bool   // this rank has no core for a second thread
	fabric   *fabric.Fabric
	reserved *memory.Memfd // of memory.Reservations, which this rank made; nil: another process did
	client   *bootstrap.Client
	server   *bootstrap.Server  // of a world of one, or at rank 0 of a job without a launcher
	manager  *bootstrap.Manager // that started this process; nil: none that speaks PMI
	world    *Team
	aborted  context.Context // ends on Abort and Close
	abort    context.CancelCauseFunc
	ended    context.Context // ends on a death as well
	end      context.CancelCauseFunc

	mu     sync.Mutex
	teams  map[string]*Team
	broken map[string]*TeamError // errors of teams that broke before this rank knew them, or that it could not make
	notes  map[string]int64

	calls atomic.Int64 // requests of this rank to others through the launcher

	serving sync.WaitGroup // goroutines of teams; begun under mu while the job is open

	cards      []*teamCard // of all ranks; nil until their sites are known
	passedOnce sync.Once
	closing    sync.Once
	closed     error
}

// Init joins the job that the environment describes, or makes a world of one
// rank: see the package's documentation. ctx bounds Init only. A job that does not start
// is an [ErrStart]. A process joins its job once: under grun a second Init returns
// [ErrJoinedBefore], and without grun [ErrJoinedBefore] or [ErrStart]. Kind: collective;
// returns when all ranks have joined.
func Init(ctx context.Context, opts ...Option) (*Job, error) {
	env, ok, err := bootstrap.FromEnv()
	if err != nil {
		return nil, err
	}
	if ok {
		if err := betweenProcesses(); err != nil {
			return nil, err
		}
		return initAt(ctx, place{env: env}, opts)
	}
	if hint := bootstrap.Foreign(); hint != "" {
		fmt.Fprintln(os.Stderr, "gopgas:", hint)
	}
	return initAlone(ctx, opts)
}

// initAt joins the job at p.
func initAt(ctx context.Context, p place, opts []Option) (*Job, error) {
	ctx = wait.Context(ctx)
	o, err := collect(opts)
	if err != nil {
		return nil, p.release(err)
	}
	m, err := p.join(ctx, &o)
	if err != nil {
		return nil, p.release(err)
	}
	j, err := newJob(ctx, o, m)
	if err != nil {
		return nil, m.giveUp(ctx, err)
	}
	if err := j.begin(ctx, m); err != nil {
		return nil, errors.Join(cannotJoin(m.env, err), j.failInit(ctx, err))
	}
	if o.verbose {
		fmt.Fprintln(os.Stderr, "gopgas:", m.describe(j))
	}
	return j, nil
}

// couldNotJoin begins the cause of the death of a rank whose Init failed.
const couldNotJoin = "it could not join: "

// cannotJoin returns the error of a rank that could not join.
func cannotJoin(env bootstrap.Env, err error) error {
	name := fmt.Sprint("rank ", env.Rank)
	if env.Rank == bootstrap.AnyRank {
		name = "this process"
	}
	return fmt.Errorf("%s cannot join the job: %w", name, memory.Descriptors(startError(err)))
}

// newJob makes the job of a rank that has joined, without its connection and world.
func newJob(ctx context.Context, o options, m *membership) (*Job, error) {
	host, err := o.host(m.env)
	if err != nil {
		return nil, err
	}
	if m.local == nil {
		if hint := unusedDevices(m.env.Rank); hint != "" {
			fmt.Fprintln(os.Stderr, hint)
		}
	}
	w, err := o.wire(m.local, m.env)
	if err != nil {
		return nil, err
	}
	if o.heap == 0 {
		o.heap = localHeap
		if w.shared {
			o.heap = sharedHeap()
		}
	}
	j := &Job{opts: o, host: host, cores: cmp.Or(o.cores, m.env.LocalCores), server: m.server, manager: m.env.Manager, reserved: m.reserved,
		bound: boundTo(m.env),
		teams: map[string]*Team{}, broken: map[string]*TeamError{}, notes: map[string]int64{}}
	j.oneCore = j.bound == 1 || j.bound == 0 && j.cores <= m.env.LocalSize
	j.aborted, j.abort = context.WithCancelCause(context.Background())
	j.ended, j.end = context.WithCancelCause(j.aborted)
	j.fabric, err = fabric.New(ctx, fabric.Config{Rank: m.env.Rank, Providers: w.providers, Heap: o.heap,
		Shared: w.shared, Reservations: reservationsOf(m.env), FMAMax: o.fmaMax, Stats: o.stats, DeviceAtomics: o.atomics == "nic",
		OwnCore: j.cores >= m.env.LocalSize, PeerTimeout: o.peerTimeout, Expect: o.expect, Connections: o.connections, Passed: j.passed}, j.call)
	if err != nil {
		return nil, fmt.Errorf("rank %d: %w", m.env.Rank, err)
	}
	return j, nil
}

// begin takes messages from the rendezvous and makes the world.
func (j *Job) begin(ctx context.Context, m *membership) (err error) {
	j.client = m.conn.Client(bootstrap.Events{Call: j.fabric.Serve, Tell: j.told, Dead: j.rankDied, Abort: j.jobAborted,
		Lost: j.launcherLost, Silence: j.opts.peerTimeout})
	members := make([]int, j.client.Size())
	for i := range members {
		members[i] = i
	}
	world := j.draft("world", members)
	j.world, err = world.makeWorld(ctx, func(mine []byte) ([][]byte, error) {
		texts, err := j.client.Exchange(ctx, world.region(), members, mine)
		return texts, explain(err)
	})
	return err
}

// call carries the fabric's requests to another rank.
func (j *Job) call(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
	j.calls.Add(1)
	response, err := j.client.Call(ctx, rank, service, payload)
	return response, explain(err)
}

// World returns the team of all ranks. Kind: local.
func (j *Job) World() *Team { return j.world }

// Context returns a context that ends when the job is closed or aborted, or when a rank
// dies. context.Cause returns the reason. Kind: local.
func (j *Job) Context() context.Context { return j.ended }

// Abort ends the whole job: the calls of all ranks, this one's too, end with
// [ErrAborted] and the cause. It does not wait. Kind: one-sided.
func (j *Job) Abort(cause error) {
	msg := "no cause given"
	if cause != nil {
		msg = cause.Error()
	}
	if j.client != nil {
		// Without a launcher no other rank is left to learn of it.
		_ = j.client.Abort(msg)
	}
	j.jobAborted(j.fabric.Rank(), msg)
}

// Note adds n to a named number that grun --stats prints for this rank.
// Kind: local.
func (j *Job) Note(name string, n int64) {
	j.mu.Lock()
	j.notes[name] += n
	j.mu.Unlock()
}

// PeerStats holds this rank's counts of its operations on one peer. Ops, Bytes and Staged
// leave out operations on mapped memory, unless the job has [WithStats].
//
// Staged is the part of Bytes that this rank copied on its way: a write of at most
// GRUN_FMA_MAX that is queued, or bytes that pass through registered memory of gopgas. It is 0
// for transfers without a copy. Signals and atomics do not count.
type PeerStats = fabric.PeerStats

// Stats returns the counts that grun --stats prints, for each peer to which this rank has
// connected, by rank. Kind: local.
func (j *Job) Stats() []PeerStats { return j.fabric.PeerStats() }

// FlushAll returns when this rank's earlier operations on all targets have reached their memory,
// whatever window or pipe they went through: remote completion, as shmem_quiet promises it. Only
// operations through a window.Queue are left out: Queue.FlushAll completes them. A started transfer needs its own wait. FlushAll goes to every rank that this rank has reached, and
// returns the first of several errors, such as [ErrRankDead]. It wakes no rank that waits for an
// element; that rank looks again by itself, 8 ms later at most. Kind: one-sided.
func (j *Job) FlushAll(ctx context.Context) error { return j.fabric.FlushAll(wait.Context(ctx)) }

// Close waits until all living ranks have closed, and serves this rank's memory until
// then. It then gives everything back. A rank that holds a window's lock gets an error
// that says so. The ranks that wait for the lock get one, too. The second call does
// nothing. Kind: collective.
func (j *Job) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	j.closing.Do(func() {
		mutant.Hesitate(mutant.Call)
		j.closed = errors.Join(j.announceClose(ctx), j.closeTogether(ctx), j.release(ctx, j.client.Close))
	})
	return j.closed
}

// announceClose tells ranks that wait in vain for this one, which is about to close. They wait
// for a lock that it holds, or for a collective call or a call on a pipe that it does not make.
func (j *Job) announceClose(ctx context.Context) error {
	j.mu.Lock()
	teams := slices.Collect(maps.Values(j.teams))
	j.mu.Unlock()
	var errs []error
	for _, t := range teams {
		t.stream.close()
		errs = append(errs, t.inner.Closing(ctx))
	}
	if j.aborted.Err() == nil { // else the end of the job ends all calls
		j.fabric.Leave(ctx)
	}
	return errors.Join(errs...)
}

// closeTogether makes the collective part of Close. It returns when all living ranks have
// arrived and have flushed their operations. It does not wait for a rank that died; the
// living ranks serve each other to the end.
func (j *Job) closeTogether(ctx context.Context) error {
	err := j.world.sync(ctx, team.Close)
	if flushed := j.fabric.FlushAll(ctx); err == nil {
		err = flushed
	}
	if err != nil && !errors.Is(err, ErrRankDead) && !errors.Is(err, ErrTeamBroken) {
		return err
	}
	living := slices.Clone(j.world.members)
	for {
		_, err := j.client.Exchange(ctx, fmt.Sprint("close", living), living, nil)
		var gone *bootstrap.PeerDeadError
		if !errors.As(err, &gone) {
			return explain(err)
		}
		living = slices.DeleteFunc(living, func(r int) bool { return r == gone.Rank })
	}
}

// shutdown ends this rank's part without waiting for other ranks.
func (j *Job) shutdown(ctx context.Context) error {
	j.closing.Do(func() { j.closed = j.release(ctx, j.client.Close) })
	return j.closed
}

// die ends this rank's part; the rank counts as dead from now on.
func (j *Job) die(ctx context.Context, cause string) error {
	j.closing.Do(func() {
		j.closed = j.release(ctx, func(ctx context.Context) error { return j.client.Die(ctx, cause) })
	})
	return j.closed
}

// failInit ends this rank's part because it could not join. Other ranks get its death with the
// cause, unless they have had that cause before: the death of a rank, or the end of the job.
func (j *Job) failInit(ctx context.Context, err error) error {
	if errors.Is(err, ErrRankDead) || errors.Is(err, ErrAborted) {
		return j.shutdown(ctx)
	}
	return j.die(ctx, couldNotJoin+err.Error())
}

// release gives everything back. goodbye leaves the rendezvous. If it is in this process,
// release serves it until all ranks have left.
func (j *Job) release(ctx context.Context, goodbye func(context.Context) error) error {
	var errs []error
	if j.client != nil {
		j.reportStats()
		// The client bounds the launcher's silence, and so this call.
		if err := goodbye(context.Background()); err != nil && !errors.Is(err, bootstrap.ErrLost) {
			errs = append(errs, err)
		}
	}
	j.endServing()
	errs = append(errs, j.fabric.Close(), closeServer(ctx, j.server, j.opts.peerTimeout, j.manager), takeLeave(j.manager))
	if j.reserved != nil {
		errs = append(errs, j.reserved.Close())
	}
	return errors.Join(errs...)
}

// beginServing lets a goroutine of a team begin, unless the job is over.
func (j *Job) beginServing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.aborted.Err() != nil {
		return false
	}
	j.serving.Add(1)
	return true
}

// endServing ends all collective calls and waits for the goroutines that run them.
func (j *Job) endServing() {
	j.mu.Lock()
	j.abort(ErrClosed)
	j.mu.Unlock()
	j.fabric.Poke()
	j.serving.Wait()
}

// reportStats sends this rank's counts to the launcher.
func (j *Job) reportStats() {
	if !j.opts.stats {
		return
	}
	stats := bootstrap.RankStats{Rank: j.fabric.Rank(), Parks: j.fabric.Bell().Parks(), Notes: j.notes}
	for _, p := range j.fabric.PeerStats() {
		stats.Peers = append(stats.Peers, bootstrap.PeerStats(p))
	}
	stats.Quarantined = j.fabric.Arena().Quarantined()
	j.mu.Lock()
	report, err := json.Marshal(stats)
	j.mu.Unlock()
	if err == nil {
		// Counts that do not arrive are missing in grun's table.
		_ = j.client.Report(bootstrap.StatsReport, report)
	}
}
