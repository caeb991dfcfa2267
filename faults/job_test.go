//go:build linux

package faults

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// envProgram makes the test binary run a program instead of the tests.
const envProgram = "GOPGAS_FAULTS_PROGRAM"

// A spec describes a job.
type spec struct {
	path     string         // of the program; "": this binary
	args     []string       // of the program
	name     string         // of the program in this binary
	place    []*hosts.Host  // by rank
	meet     *hosts.Host    // of the rendezvous
	lan      *hosts.Network // of its address
	family   hosts.Family   // of the rendezvous' address
	meetName string         // of the rendezvous' host; "": ranks get its address
	env      []string
	prefix   []string         // a command that runs the program
	user     map[int]uint32   // of a rank; root runs the others
	rankIn   map[int][]string // variables of one rank
}

// A job is a job whose ranks are processes on several hosts. The test is its launcher.
type job struct {
	testing.TB
	spec   spec
	server *bootstrap.Server
	at     net.Listener
	ranks  []*rank

	mu    sync.Mutex
	stats map[int]bootstrap.RankStats
}

// A rank is one process of a job, or the grun that starts them all.
type rank struct {
	*hosts.Process
	name  string
	input io.Closer

	mu     sync.Mutex
	output strings.Builder
	news   []news        // that the test has not taken
	more   chan struct{} // holds a token when there is news, or the rank has ended
	ended  bool
	line   string // the part of a line that has been written so far
}

// start starts the job.
func start(t testing.TB, s spec) *job {
	t.Helper()
	j := &job{TB: t, spec: s, stats: map[int]bootstrap.RankStats{}}
	secret := make([]byte, bootstrap.SecretSize)
	_, err := rand.Read(secret)
	require.NoError(t, err)
	j.server = bootstrap.NewServer(len(s.place), secret, bootstrap.Hooks{Reported: j.reported, Lost: func(int, error) {}})
	j.at, err = s.meet.Listen(s.lan.Addr(s.meet, s.family))
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { _ = j.server.Serve(context.Background(), j.at) })
	t.Cleanup(func() {
		_ = j.server.Close()
		serving.Wait()
	})
	for i := range s.place {
		j.ranks = append(j.ranks, j.launch(i, secret))
	}
	return j
}

// launch starts a rank.
func (j *job) launch(number int, secret []byte) *rank {
	j.Helper()
	here := j.spec.place[number]
	local := slices.Index(j.numbersAt(here), number)
	env := bootstrap.Env{JobID: "faults-" + hex.EncodeToString(secret[:4]), Rank: number, Size: len(j.spec.place),
		LocalRank: local, LocalSize: len(j.numbersAt(here)), LocalCores: 1, Addr: j.addr(), Secret: secret}
	path := j.spec.path
	if path == "" {
		var err error
		path, err = os.Executable()
		require.NoError(j, err)
	}
	command := append(slices.Clone(j.spec.prefix), append([]string{path}, j.spec.args...)...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append(os.Environ(), bootstrap.EnvHeap+"=64MiB", envProgram+"="+j.spec.name), j.spec.env...)
	cmd.Env = append(append(cmd.Env, j.spec.rankIn[number]...), env.Vars()...)
	if id, ok := j.spec.user[number]; ok {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
	}
	return j.spawn(fmt.Sprintf("rank %d", number), here, cmd, func(err error) {
		j.server.RankDied(number, fmt.Sprint("ended: ", err)) // unless it has left
	})
}

// spawn starts a process of the job, and calls died after its end.
func (j *job) spawn(name string, on *hosts.Host, cmd *exec.Cmd, died func(error)) *rank {
	j.Helper()
	r := &rank{name: name, more: make(chan struct{}, 1)}
	cmd.Stdout, cmd.Stderr = r, r
	input, err := cmd.StdinPipe()
	require.NoError(j, err)
	r.input = input
	r.Process, err = on.Start(cmd)
	require.NoError(j, err)
	go func() {
		died(r.Wait())
		r.mu.Lock()
		r.ended = true
		r.mu.Unlock()
		r.tell()
	}()
	return r
}

// addr returns the address at which ranks find the rendezvous.
func (j *job) addr() string {
	host, port, err := net.SplitHostPort(j.at.Addr().String())
	require.NoError(j, err)
	if j.spec.meetName != "" {
		host = j.spec.meetName
	}
	return net.JoinHostPort(host, port)
}

// numbersAt lists the ranks on a host.
func (j *job) numbersAt(h *hosts.Host) (numbers []int) {
	for i, other := range j.spec.place {
		if other == h {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func (j *job) reported(_ int, name string, payload []byte) {
	var s bootstrap.RankStats
	if name != bootstrap.StatsReport || json.Unmarshal(payload, &s) != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats[s.Rank] = s
}

// Write takes output of the rank, and passes its news on.
func (r *rank) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.line += string(b)
	for {
		line, rest, whole := strings.Cut(r.line, "\n")
		if !whole {
			break
		}
		r.line = rest
		if !strings.Contains(line, roundPrefix) { // there are many
			r.output.WriteString(line + "\n")
		}
		var n news
		if text, ok := strings.CutPrefix(line, newsPrefix); ok && json.Unmarshal([]byte(text), &n) == nil {
			r.news = append(r.news, n)
			r.tell()
		}
	}
	return len(b), nil
}

func (r *rank) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("%s: %s", r.name, r.output.String())
}

// log returns the output of all ranks.
func (j *job) log() string {
	var all strings.Builder
	for _, r := range j.ranks {
		all.WriteString(r.text() + "\n")
	}
	return all.String()
}

// tell wakes the test.
func (r *rank) tell() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take returns the next news, or false if there is none; over says that none will follow.
func (r *rank) take() (n news, ok, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.news) == 0 {
		return news{}, false, r.ended
	}
	n, r.news = r.news[0], r.news[1:]
	return n, true, false
}

// next waits for news of a rank. It returns false after the rank's end.
func (j *job) next(r *rank) (news, bool) {
	j.Helper()
	ctx, stop := testwatch.With(j.Context())
	defer stop()
	for {
		n, ok, over := r.take()
		if ok || over {
			return n, ok
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			_ = r.Signal(syscall.SIGQUIT) // shows where it waits
			<-r.Done()
			require.FailNow(j, "no news", "of %s: %v\n%s", r.name, context.Cause(ctx), j.log())
		}
	}
}

// await waits for a rank to print the named news.
func (j *job) await(r *rank, what string) news {
	j.Helper()
	for {
		n, ok := j.next(r)
		require.True(j, ok, "%s has ended\n%s", r.name, j.log())
		if n.What == what {
			return n
		}
		require.Contains(j, []string{"round", "ready"}, n.What, j.log())
	}
}

// ready waits until all operations of all ranks run.
func (j *job) ready() {
	j.Helper()
	for _, r := range j.ranks {
		j.await(r, "ready")
	}
}

// finish ends the input of all ranks, so that they end their operations.
func (j *job) finish() {
	for _, r := range j.ranks {
		_ = r.input.Close()
	}
}

// wait waits until all ranks have ended, and returns their errors.
func (j *job) wait() (errs []error) {
	j.Helper()
	for _, r := range j.ranks {
		for more := true; more; {
			_, more = j.next(r)
		}
		errs = append(errs, r.Wait())
	}
	return errs
}

// succeeds ends the job, and requires that it ends well.
func (j *job) succeeds() {
	j.Helper()
	j.finish()
	for i, err := range j.wait() {
		require.NoError(j, err, "rank %d\n%s", i, j.log())
	}
}

// leavesNothing requires that no process of the job runs, and that it left no files.
func (j *job) leavesNothing() {
	j.Helper()
	for _, h := range j.spec.place {
		require.Empty(j, left(j, h), "left on host %s", h.Name())
	}
}

// daemons matches the command lines of servers that tests start on hosts.
var daemons = regexp.MustCompile(`sshd|^\S*/(munged|slurmctld|slurmd) |^slurmctld: slurmscriptd`)

// left lists the processes and files of jobs on a host.
func left(t testing.TB, h *hosts.Host) (things []string) {
	t.Helper()
	running, err := h.Running()
	require.NoError(t, err)
	for _, line := range running {
		if !daemons.MatchString(line) {
			things = append(things, line)
		}
	}
	files, err := h.Files("/dev/shm", hosts.TempDir, hosts.HomeDir)
	require.NoError(t, err)
	ofGrun := func(file string) bool { return strings.HasPrefix(filepath.Base(file), "grun-") }
	return append(things, slices.DeleteFunc(files, ofGrun)...)
}
