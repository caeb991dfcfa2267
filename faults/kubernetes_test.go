//go:build linux

package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/hosts"
)

// pods stands for the pods of examples/kubernetes: a host for each index, with the variables
// and the mounted secret of the manifest. The test is the cluster's name service.
type pods struct {
	testing.TB
	lan   *hosts.Network
	hosts []*hosts.Host // pods of the job, one for another pod 0, and last one that is not of the job
	names string        // the table of names of all pods
	env   []string      // of the manifest, without GRUN_RUN
	addr  string        // GRUN_ADDR
}

var manifestVar = regexp.MustCompile(`(?m)^ *- name: (GRUN_\w+)\n *value: "?([^"\n]+?)"?$`)

func newPods(t testing.TB) *pods {
	t.Helper()
	manifest, err := os.ReadFile("../examples/kubernetes/hello.yaml")
	require.NoError(t, err)
	bed := hosts.New(t, 1)
	p := &pods{TB: t, lan: bed.Network(hosts.IPv4), names: filepath.Join(t.TempDir(), "names")}
	secret := filepath.Join(t.TempDir(), "job.secret")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("0123456789abcdef", 4)), 0o440)) // as a pod with fsGroup has it
	size := 0
	for _, v := range manifestVar.FindAllStringSubmatch(string(manifest), -1) {
		name, value := v[1], v[2]
		switch name {
		case bootstrap.EnvSize:
			size, err = strconv.Atoi(value)
			require.NoError(t, err)
		case bootstrap.EnvAddr:
			p.addr = value
		case bootstrap.EnvSecretFile:
			value = secret
		}
		p.env = append(p.env, name+"="+value)
	}
	require.Equal(t, 3, size, "%s", manifest)
	require.Len(t, p.env, 3, "%s", manifest)
	require.Regexp(t, `(?m)^ *- name: GRUN_RUN\b.*\n *valueFrom:\n *fieldRef:\n *fieldPath: metadata\.labels\['batch\.kubernetes\.io/controller-uid'\]$`, string(manifest))
	p.lead("")
	for i := range size + 2 {
		h := bed.Host(fmt.Sprintf("hello-%d", i))
		p.lan.Join(h)
		_, err := h.Output("mount", "--bind", p.names, "/etc/hosts")
		require.NoError(t, err)
		p.hosts = append(p.hosts, h)
	}
	return p
}

// lead has the name of pod 0 lead to an address, or to none.
func (p *pods) lead(to string) {
	p.Helper()
	text := "127.0.0.1 localhost\n"
	if to != "" {
		name, _, _ := strings.Cut(p.addr, ":")
		text += to + " " + name + "\n"
	}
	require.NoError(p, os.WriteFile(p.names, []byte(text), 0o644))
}

// job returns a job without ranks.
func (p *pods) job() *job { return &job{TB: p, spec: spec{place: p.hosts}} }

// start starts the program of a pod, which runs all operations.
func (p *pods) start(j *job, index int) *rank {
	p.Helper()
	return p.startOn(j, index, index, "uid of the Job")
}

// startOn starts the program of a pod on the host with a number. run is the uid of its Job.
func (p *pods) startOn(j *job, host, index int, run string) *rank {
	p.Helper()
	exe, err := os.Executable()
	require.NoError(p, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "JOB_COMPLETION_INDEX="+strconv.Itoa(index), envProgram+"=all", "GRUN_HEAP=64MiB")
	cmd.Env = append(append(cmd.Env, p.env...), "GRUN_RUN="+run)
	r := j.spawn(fmt.Sprintf("pod %d", index), p.hosts[host], cmd, func(error) {})
	j.ranks = append(j.ranks, r)
	return r
}

// listen listens on the last pod, which is not of the job.
func (p *pods) listen() *countingListener {
	p.Helper()
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(p, err)
	counted := &countingListener{}
	h := p.hosts[len(p.hosts)-1]
	require.NoError(p, h.Do(func() (err error) {
		counted.Listener, err = net.Listen("tcp", net.JoinHostPort(p.at(len(p.hosts)-1), port))
		return err
	}))
	return counted
}

// foreign serves the rendezvous of another job on the last pod. The counter counts connections.
func (p *pods) foreign() *atomic.Int64 {
	p.Helper()
	server := bootstrap.NewServer(len(p.hosts), make([]byte, bootstrap.SecretSize), bootstrap.Hooks{})
	counted := p.listen()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(context.Background(), counted)
	}()
	p.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return &counted.count
}

// relay passes connections to the last pod on to another pod. The counter counts connections.
func (p *pods) relay(index int) *atomic.Int64 {
	p.Helper()
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(p, err)
	to, err := netip.ParseAddrPort(net.JoinHostPort(p.at(index), port))
	require.NoError(p, err)
	counted := p.listen()
	var passing sync.WaitGroup
	over := make(chan struct{})
	passing.Go(func() {
		for {
			conn, err := counted.Accept()
			if err != nil {
				return
			}
			passing.Go(func() { p.pass(conn, to, over) })
		}
	})
	p.Cleanup(func() {
		_ = counted.Close()
		close(over)
		passing.Wait()
	})
	return &counted.count
}

// pass passes a connection of the last pod on until one of its ends is closed, or over is.
func (p *pods) pass(conn net.Conn, to netip.AddrPort, over <-chan struct{}) {
	defer conn.Close()
	next, err := p.hosts[len(p.hosts)-1].Dial(to)
	if err != nil {
		return // nothing listens there yet
	}
	defer next.Close()
	ended := make(chan struct{}, 2)
	for _, ends := range [][2]net.Conn{{conn, next}, {next, conn}} {
		go func() {
			_, _ = io.Copy(struct{ io.Writer }{ends[0]}, struct{ io.Reader }{ends[1]}) // two sockets would keep a pipe of package net open
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-over:
	}
}

// at returns the address of a pod.
func (p *pods) at(index int) string { return p.lan.Addr(p.hosts[index], hosts.IPv4).String() }

type countingListener struct {
	net.Listener
	count atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	l.count.Add(1)
	return conn, err
}

// TestKubernetesJobStartsThoughNamesAreLateAndStale starts the pods when pod 0 has no name.
// Then its name leads to a pod of another job, and at last to pod 0.
func TestKubernetesJobStartsThoughNamesAreLateAndStale(t *testing.T) {
	need(t)
	t.Parallel()
	p := newPods(t)
	tried := p.foreign()
	j := p.job()
	for index := range 3 {
		p.start(j, 2-index)
	}
	require.Zero(t, tried.Load())
	p.lead(p.at(4))
	for began := time.Now(); tried.Load() < 20; time.Sleep(10 * time.Millisecond) { // ranks without patience give up after ten
		require.Less(t, time.Since(began), 2*testwatch.Patience(), j.log())
	}
	p.lead(p.at(0))
	j.ready()
	j.succeeds()
	j.leavesNothing()
}

// TestKubernetesJobMeetsNoPodOfItsEarlierRun applies a job again while pod 0 of its earlier run
// still ends, and the name leads to that pod. Both runs have one secret.
func TestKubernetesJobMeetsNoPodOfItsEarlierRun(t *testing.T) {
	need(t)
	t.Parallel()
	p := newPods(t)
	tried := p.relay(0)
	p.lead(p.at(4))
	earlier, j := p.job(), p.job()
	p.startOn(earlier, 0, 0, "earlier uid")
	p.start(j, 2)
	p.start(j, 1)
	for began := time.Now(); tried.Load() < 20; time.Sleep(10 * time.Millisecond) { // a rank of the earlier run tries no more
		require.Less(t, time.Since(began), 2*testwatch.Patience(), "%s\n%s", earlier.log(), j.log())
	}
	p.startOn(j, 3, 0, "uid of the Job")
	p.lead(p.at(3))
	j.ready()
	require.NoError(t, earlier.ranks[0].Signal(syscall.SIGKILL))
	earlier.wait()
	j.succeeds()
	j.leavesNothing()
}

// TestKubernetesPodThatWasRestartedIsRefused starts an index again while its first process
// runs, and after its death.
func TestKubernetesPodThatWasRestartedIsRefused(t *testing.T) {
	need(t)
	t.Parallel()
	p := newPods(t)
	p.lead(p.at(0))
	j := p.job()
	for index := range 3 {
		p.start(j, index)
	}
	j.ready()
	again := p.job()
	require.Error(t, p.start(again, 1).Wait())
	require.Regexp(t, `rank has joined its job before.*rank 1 may not join: this rank has joined before: .*start the whole job again`, again.log())
	require.NoError(t, j.ranks[2].Signal(syscall.SIGKILL))
	for n, ok := j.next(j.ranks[0]); !n.has("dead"); n, ok = j.next(j.ranks[0]) {
		require.True(t, ok, j.log())
	}
	again = p.job()
	require.Error(t, p.start(again, 2).Wait())
	require.Regexp(t, `rank has joined its job before.*rank 2 may not join: it was declared dead .*start the whole job again`, again.log())
	j.finish()
	j.wait()
	j.leavesNothing()
}
