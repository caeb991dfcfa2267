//go:build linux

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// A slurmCluster has a login host and two nodes with the daemons of Slurm.
type slurmCluster struct {
	testing.TB
	*hosts.Slurm
	lan *hosts.Network
	dir string // of programs and of output; all hosts have it
}

// newSlurm makes a cluster whose users have the programs of dir on their PATH.
func newSlurm(t testing.TB, dir string, settings ...string) *slurmCluster {
	t.Helper()
	bed := hosts.New(t, 1)
	c := &slurmCluster{TB: t, lan: bed.Network(hosts.IPv4), dir: dir}
	for _, name := range []string{"login", "node1", "node2"} {
		c.lan.Join(bed.Host(name))
	}
	c.Slurm = bed.Slurm(settings...)
	return c
}

// run starts a command on the login host.
func (c *slurmCluster) run(name string, args ...string) *job {
	c.Helper()
	cmd := c.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Env, "PATH="+c.dir+":"+os.Getenv("PATH"), "HOME="+hosts.HomeDir, "TMPDIR="+hosts.TempDir, "GRUN_HEAP=64MiB")
	j := &job{TB: c, spec: spec{place: append(slices.Clone(c.Nodes), c.Login)}}
	j.ranks = []*rank{j.spawn(name, c.Login, cmd, func(error) {})}
	return j
}

// batch writes a script whose output goes to the file out.
func (c *slurmCluster) batch(lines ...string) (script, out string) {
	c.Helper()
	dir := c.TempDir()
	script, out = filepath.Join(dir, "batch"), filepath.Join(dir, "out")
	text := "#!/bin/sh\n#SBATCH -o " + out + "\n" + strings.Join(lines, "\n") + "\n"
	require.NoError(c, os.WriteFile(script, []byte(text), 0o755))
	return script, out
}

// must runs a command of Slurm.
func (c *slurmCluster) must(name string, args ...string) string {
	c.Helper()
	out, err := c.Run(name, args...)
	require.NoError(c, err, c.Logs())
	return out
}

// until waits for a file to have n matches of a pattern.
func (c *slurmCluster) until(file, pattern string, n int) {
	c.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // no event tells of a line in a file
		data, _ := os.ReadFile(file) // the job may not have begun
		text := string(data)
		if len(regexp.MustCompile(pattern).FindAllString(text, -1)) >= n {
			return
		}
		require.Less(c, time.Since(began), 4*testwatch.Patience(), "%d times %s\n%s\n%s", n, pattern, text, c.Logs())
	}
}

// TestCommandsOfTheReadmeRunUnderSlurm runs the lines of the README's block about Slurm.
func TestCommandsOfTheReadmeRunUnderSlurm(t *testing.T) {
	need(t)
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^    ((?:salloc|sbatch|srun) .*?)(?: *#.*)?$`).FindAllStringSubmatch(string(readme), -1)
	require.NotEmpty(t, lines)
	dir := build(t, "../cmd/grun", "../examples/hello")
	require.NoError(t, os.Link(dir+"/hello", dir+"/prog"))
	c := newSlurm(t, dir)
	require.NoError(t, os.WriteFile(dir+"/job.sh", []byte("#!/bin/sh\ngrun ./prog\n"), 0o755))
	for _, line := range lines {
		command := strings.Replace(line[1], "sbatch ", "sbatch --wait -o out ", 1)
		j := c.run("sh", "-c", command+"; code=$?; cat out 2>/dev/null; rm -f out; exit $code")
		require.Equal(t, 0, j.exits(), "%s\n%s\n%s", command, j.log(), c.Logs())
		said := strings.Join(j.lines(), "\n")
		ranks, err := strconv.Atoi(regexp.MustCompile(`-n *(\d)`).FindStringSubmatch(command)[1])
		require.NoError(t, err)
		require.Len(t, regexp.MustCompile(fmt.Sprintf(`(?m)^rank \d of %d: rank \d was here$`, ranks)).FindAllString(said, -1), ranks, "%s\n%s", command, said)
		j.leavesNothingSoon()
	}
}

// A slurmFault ends or disturbs a job of Slurm, whose command is salloc -N2 -n3 grun.
type slurmFault struct {
	name   string
	limit  string // of time, for salloc
	flags  []string
	impose func(c *slurmCluster, j *job) // once all operations run
	code   int                           // that salloc exits with: grun's
	says   string                        // a pattern in what grun prints
	soak   bool                          // only with GOPGAS_SOAK=1
	lost   bool                          // node2 stays lost
	conf   []string                      // settings of Slurm
	plain  bool                          // the program is not copied, and has no child that leaves the step: Slurm itself kills the agent
}

var slurmFaults = []slurmFault{
	{name: "scancel", code: 143, says: `(?m)^grun: Slurm ended the job: STEP \S+ ON node\d CANCEL\w+ AT \S+$`,
		impose: func(c *slurmCluster, _ *job) { c.must("scancel", "1") }},
	{name: "time limit", limit: "1", code: 143, soak: true, says: `(?m)^grun: Slurm ended the job: STEP \S+ ON node\d CANCEL\w+ AT \S+ DUE TO TIME LIMIT$`},
	{name: "grun interrupted", code: 130, says: `(?m)^grun: rank [0-2] on node[12] died of SIGINT`,
		impose: func(c *slurmCluster, _ *job) { c.kill(c.Login, syscall.SIGINT, "/grun", "--stage") }},
	{name: "grun killed", code: 0 /* salloc hides the signal */, impose: func(c *slurmCluster, _ *job) { c.kill(c.Login, syscall.SIGKILL, "/grun", "--stage") }},
	{name: "srun killed", code: 70, plain: true, says: `(?m)^grun: rank \d on node2 was lost with its host: srun exited with code 137`,
		impose: func(c *slurmCluster, _ *job) { c.kill(c.Login, syscall.SIGKILL, "srun ", "--nodelist=node2") }},
	{name: "rank killed", code: 137, says: `(?m)^grun: rank 2 on node2 died of SIGKILL`,
		impose: func(c *slurmCluster, _ *job) { c.kill(c.Nodes[1], syscall.SIGKILL, "faults.test") }},
	{name: "slurmd and its processes killed", code: 70, lost: true, flags: []string{"--peer-timeout", "5s"}, says: `(?m)^grun: rank \d on node2 was lost with its host: `,
		impose: killNode2},
	{name: "slurmd and its processes killed, and Slurm first to know", code: 143, lost: true, soak: true, flags: []string{"--peer-timeout", "5m"}, conf: []string{"SlurmdTimeout=10"},
		says: `(?m)^grun: Slurm ended the job: .*(NODE FAILURE|Node failure)`, impose: killNode2},
	{name: "link of a node cut", code: 70, lost: true, flags: []string{"--peer-timeout", "3s"}, says: `(?m)^grun: rank \d on node2 was lost with its host: no answer for 3s`,
		impose: func(c *slurmCluster, _ *job) { c.lan.Around(c.Nodes[1], down) }},
}

// kill sends a signal to the process of a host whose command line has all of the words.
func (c *slurmCluster) kill(h *hosts.Host, sig syscall.Signal, words ...string) {
	c.Helper()
	var found []int
	running, err := h.Running()
	require.NoError(c, err)
	for number, line := range running {
		lacks := func(word string) bool { return !strings.Contains(line, word) }
		if !slices.ContainsFunc(words, lacks) && !strings.HasPrefix(line, "salloc ") && !strings.HasPrefix(line, "sh ") {
			found = append(found, number)
		}
	}
	slices.Sort(found) // srun has a child of the same name
	require.NotEmpty(c, found, "%q in %v", words, running)
	require.NoError(c, h.Kill(found[0], sig))
}

// killNode2 kills all processes of a node but its first, as a loss of power does.
func killNode2(c *slurmCluster, _ *job) {
	_, err := c.Nodes[1].Output("sh", "-c", "kill -9 -1") // all at once: none reports another's end
	require.NoError(c, err)
}

// plain is endless without a copied program, and without a child that leaves the step. Slurm
// may kill the agent before it removes these.
func plain(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	program := endless(t)
	return append(program[1:len(program)-1], exe)
}

func TestSlurmFaultEndsTheJobOnEveryNode(t *testing.T) {
	need(t)
	dir := build(t, "../cmd/grun")
	for _, f := range slurmFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			if f.soak && !testjob.Soak() {
				t.Skip("takes long: set GOPGAS_SOAK=1")
			}
			c := newSlurm(t, dir, f.conf...)
			args := []string{"-N2", "-n3"}
			if f.limit != "" {
				args = append(args, "-t", f.limit)
			}
			args = append(append(args, dir+"/grun"), f.flags...)
			program := endless(c)
			if f.plain {
				program = plain(c)
			}
			j := c.run("salloc", append(args, program...)...)
			j.allReady(3)
			began := time.Now()
			if f.impose != nil {
				f.impose(c, j)
			}
			require.Equal(t, f.code, j.exits(), "%s\n%s", j.log(), c.Logs())
			t.Logf("after %v: %s", time.Since(began).Round(10*time.Millisecond), strings.Join(j.linesOfGrun(), "\n"))
			require.Regexp(t, f.says, strings.Join(j.lines(), "\n"))
			if f.lost {
				j.spec.place = []*hosts.Host{c.Nodes[0], c.Login}
			}
			j.leavesNothingSoon()
		})
	}
}

// TestRequeuedSlurmJobMeetsNothingOfItsFirstRun has Slurm begin a batch job again, under the same
// number, while its ranks run. The agents of the second run remove the programs of the first.
func TestRequeuedSlurmJobMeetsNothingOfItsFirstRun(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun")
	c := newSlurm(t, dir, "AuthInfo=socket=/run/munge.sock,cred_expire=20") // Slurm begins the second run so much later
	words := append([]string{"sleep 1000 |", dir + "/grun", "--stage"}, plain(c)...)
	script, out := c.batch("echo run ${SLURM_RESTART_COUNT:-0} of job $SLURM_JOB_ID", strings.Join(words, " "))
	j := c.run("sbatch", "--requeue", "--open-mode=append", "-N2", "-n3", script)
	require.Equal(t, 0, j.exits(), j.log())
	c.until(out, `"ready"`, 3)
	c.must("scontrol", "requeue", "1")
	c.until(out, `run 1 of job 1`, 1)
	c.until(out, `"ready"`, 6)
	c.kill(c.Nodes[0], syscall.SIGINT, "/grun", "--stage")
	c.until(out, `(?m)^grun: rank \d on node\d died of SIGINT`, 1)
	c.must("scancel", "1")
	j.leavesNothingSoon()
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(text), "joined before")
}

// TestSlurmRanksWithoutGrunEnd has srun start ranks that meet by PMI, or by a secret in a
// file. Then a rank dies, or a user ends the job.
func TestSlurmRanksWithoutGrunEnd(t *testing.T) {
	need(t)
	secret := filepath.Join(t.TempDir(), "job.secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600))
	exe, err := os.Executable()
	require.NoError(t, err)
	for name, f := range map[string]struct {
		words  []string
		impose func(c *slurmCluster)
		dead   bool // rank 0 gets ErrRankDead
	}{
		"rank killed":              {[]string{"--mpi=pmi2"}, func(c *slurmCluster) { c.kill(c.Nodes[1], syscall.SIGKILL, exe) }, true},
		"rank killed, without PMI": {[]string{"--mpi=none", "--export=ALL,GRUN_SECRET_FILE=" + secret}, func(c *slurmCluster) { c.kill(c.Nodes[1], syscall.SIGKILL, exe) }, true},
		"scancel":                  {[]string{"--mpi=pmi2"}, func(c *slurmCluster) { c.must("scancel", "1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newSlurm(t, t.TempDir())
			words := append([]string{envProgram + "=all", "srun", "-N2", "-n3"}, f.words...)
			j := c.run("env", append(words, exe)...)
			j.allReady(3)
			f.impose(c)
			for f.dead {
				n, ok := j.next(j.ranks[0])
				require.True(t, ok, j.log())
				if n.has("dead") {
					break
				}
			}
			j.finish()
			require.NotZero(t, j.exits(), j.log())
			j.leavesNothingSoon()
		})
	}
}

// TestSignalOfSlurmReachesEachRankOnce has Slurm send one signal to all ranks, and then another
// one, at which the ranks say how often they got the first.
func TestSignalOfSlurmReachesEachRankOnce(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun")
	exe, err := os.Executable()
	require.NoError(t, err)
	c := newSlurm(t, dir)
	j := c.run("salloc", "-N2", "-n3", dir+"/grun", "-x", envProgram+"=signals", exe)
	j.allReady(3)
	c.must("scancel", "--signal=USR1", "1")
	for range 3 {
		j.await(j.ranks[0], "signaled")
	}
	c.must("scancel", "--signal=USR2", "1")
	require.Equal(t, 0, j.exits(), "%s\n%s", j.log(), c.Logs())
	require.Len(t, regexp.MustCompile(`"text":"1 times"`).FindAllString(j.log(), -1), 3, j.log())
	j.leavesNothingSoon()
}

// TestSlurmGivesRankZeroATerminal has srun give rank 0 a terminal. Slurm shows no output of other
// tasks there. A shell in it may run one program that meets by PMI.
func TestSlurmGivesRankZeroATerminal(t *testing.T) {
	need(t)
	t.Parallel()
	c := newSlurm(t, build(t, "../cmd/grun", "../examples/hello"))
	for line, want := range map[string]struct {
		code int
		says string
	}{
		"srun --pty --mpi=pmi2 -N2 -n2 ./hello":                                        {0, `rank 0 of 2: rank 1 was here`},
		"srun --pty --mpi=pmi2 -n1 sh -c './hello; grun --oversubscribe -n 2 ./hello'": {0, `rank 0 of 1: rank 0 was here\s+rank \d of 2: rank \d was here\s+rank \d of 2`},
		"srun --pty --mpi=pmi2 -n1 sh -c './hello; ./hello'":                           {1, `rank 0 of 1: rank 0 was here\s+hello: .*start each program by its own srun`},
	} {
		j := c.run("script", "-qec", line, "/dev/null")
		require.Equal(t, want.code, j.exits(), "%s\n%s\n%s", line, j.log(), c.Logs())
		require.Regexp(t, want.says, j.log(), line)
		j.leavesNothingSoon()
	}
}

// TestTwoGrunsShareASlurmAllocation starts two jobs in one allocation at once.
func TestTwoGrunsShareASlurmAllocation(t *testing.T) {
	need(t)
	t.Parallel()
	dir := build(t, "../cmd/grun", "../examples/hello")
	c := newSlurm(t, dir)
	j := c.run("salloc", "-N2", "-n4", "sh", "-c", "grun ./hello & grun -H node2:3 ./hello & wait")
	require.Equal(t, 0, j.exits(), j.log())
	require.Len(t, regexp.MustCompile(`rank \d of 4: `).FindAllString(j.log(), -1), 4, j.log())
	require.Len(t, regexp.MustCompile(`rank \d of 3: `).FindAllString(j.log(), -1), 3, j.log())
	j.leavesNothingSoon()
}
