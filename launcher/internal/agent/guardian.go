//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher/internal/spawn"
)

const (
	// envGuardian names the job that a guardian guards. A guardian's environment
	// has no other variable: if this launcher is part of another job, that job's
	// sweep must not find the guardian.
	envGuardian = "GRUN_GUARDIAN"

	guardianPipe = 3 // the descriptor at which a guardian finds its pipe

	guardianPatience = 30 * time.Second // bounds a guardian's sweep

	// guardianCount is two, so that one remains if the other one is killed just
	// before the launcher. The launcher replaces one that is killed, within
	// reason.
	guardianCount = 2
	maxRestarts   = 100
	restartPause  = time.Millisecond
)

// guardianName is a guardian's argv[0]: a variable alone may be a user's.
const guardianName = "grun-guardian"

// GuardianMain turns this process into a guardian if it was started as one,
// and then does not return.
func GuardianMain() {
	job, ok := parseJobName(os.Getenv(envGuardian))
	if !ok || os.Args[0] != guardianName {
		return
	}
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	pipe := os.NewFile(guardianPipe, "launcher")
	pipe.Read(make([]byte, 1)) //nolint:errcheck // nothing is ever written: this is the launcher's end
	sweep(job, time.Now().Add(guardianPatience))
	os.Exit(0)
}

// A guardian is the launcher's end of a guardian process. The write end of the
// pipe is open in the launcher only and closes with it.
type guardian struct {
	job     jobName
	r, w    *os.File
	quit    chan struct{}
	stopped chan struct{}
}

// startGuardians starts the processes that end the ranks if the agent is killed. They are several,
// so that one can be killed, too.
func startGuardians(job jobName) (list []*guardian, err error) {
	for range guardianCount {
		g, err := startGuardian(job)
		if err != nil {
			dismiss(list)
			return nil, err
		}
		list = append(list, g)
	}
	return list, nil
}

// startGuardian starts one, which a goroutine replaces whenever it ends. The pipe tells it of this
// process's end.
func startGuardian(job jobName) (*guardian, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guardian: %w", err)
	}
	g := &guardian{job: job, r: r, w: w, quit: make(chan struct{}), stopped: make(chan struct{})}
	p, err := g.spawn()
	if err != nil {
		r.Close()
		w.Close()
		return nil, fmt.Errorf("guardian: %w", err)
	}
	go g.keep(p)
	return g, nil
}

// spawn starts the process in a session of its own: signals of the terminal do not reach it.
func (g *guardian) spawn() (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	var p *os.Process
	done := make(chan error)
	go func() {
		var err error
		p, err = os.StartProcess("/proc/self/exe", []string{guardianName}, &os.ProcAttr{
			Dir:   "/",
			Env:   []string{envGuardian + "=" + g.job.String(), "GOMAXPROCS=1"},
			Files: []*os.File{null, null, null, g.r},
			Sys:   &syscall.SysProcAttr{Setsid: true},
		})
		done <- err
	}()
	err = spawn.Await(done)
	return p, err
}

// keep replaces a guardian that dies. The launcher goes on in any case.
func (g *guardian) keep(p *os.Process) {
	defer close(g.stopped)
	for range maxRestarts {
		gone := make(chan struct{})
		go func() {
			p.Wait() //nolint:errcheck // how it ended does not matter
			close(gone)
		}()
		select {
		case <-gone:
		case <-g.quit:
			p.Kill() //nolint:errcheck // gone is fine
			<-gone
			return
		}
		select {
		case <-g.quit:
			return
		case <-time.After(restartPause):
		}
		var err error
		if p, err = g.spawn(); err != nil {
			return
		}
	}
	p.Kill() //nolint:errcheck // gone is fine
	p.Wait() //nolint:errcheck // how it ended does not matter
}

// dismiss ends guardians once there is nothing left to guard. It does not wait
// for one that is stopped, or still starting.
func dismiss(list []*guardian) {
	for _, g := range list {
		close(g.quit)
	}
	for _, g := range list {
		<-g.stopped
		g.w.Close()
		g.r.Close()
	}
}
