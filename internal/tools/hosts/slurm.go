//go:build linux

package hosts

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// slurmConfig is the configuration of a cluster: its folder, its controller, and the lines
// of settings and nodes. Each node claims 8 CPUs, whatever this machine has. The times are Slurm's own
// or near them: daemons of a busy machine are slow. KillWait is short of a test's patience.
const slurmConfig = `ClusterName=test
SlurmctldHost=%[2]s
SlurmUser=root
SlurmdUser=root
SlurmctldPort=6817
SlurmdPort=6818
AuthType=auth/munge
AuthInfo=socket=/run/munge.sock
CredType=cred/munge
StateSaveLocation=%[1]s/state
SlurmdSpoolDir=/run/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=%[1]s/slurmctld.log
SlurmdLogFile=%[1]s/slurmd-%%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=300
MinJobAge=300
KillWait=10
MessageTimeout=30
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
%[3]s`

// cgroupConfig keeps Slurm from the control groups of this machine.
const cgroupConfig = "CgroupPlugin=cgroup/v1\nConstrainCores=no\nConstrainRAMSpace=no\nConstrainDevices=no\n"

// A Slurm is a cluster of Debian's Slurm in the hosts of a testbed.
type Slurm struct {
	bed   *Testbed
	Login *Host   // has the controller and no node: users submit jobs here
	Nodes []*Host // each with a slurmd
	dir   string
}

// Slurm starts munged on all hosts, slurmctld on the first one and slurmd on the others.
// It returns when all nodes are idle. The daemons and their jobs end with their hosts. The
// settings are lines of its configuration, which win over other lines.
func (b *Testbed) Slurm(settings ...string) *Slurm {
	b.t.Helper()
	if err := lacks("munged", "slurmctld", "slurmd", "srun"); err != nil {
		unable(b.t, err)
	}
	s := &Slurm{bed: b, Login: b.hosts[0], Nodes: b.hosts[1:], dir: filepath.Join(b.dir, "slurm")}
	b.must(os.MkdirAll(filepath.Join(s.dir, "state"), 0o755), "folder of Slurm")
	for dir := s.dir; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		b.must(os.Chmod(dir, 0o755), "folder of Slurm") // munged refuses folders that others may write to
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails
	b.must(os.WriteFile(filepath.Join(s.dir, "munge.key"), key, 0o600), "key of munged")
	var lines strings.Builder
	for _, line := range settings {
		fmt.Fprintln(&lines, line)
	}
	for _, h := range s.Nodes {
		fmt.Fprintf(&lines, "NodeName=%s NodeAddr=%s CPUs=8 RealMemory=1000 State=UNKNOWN\n", h.name, h.Addr(IPv4))
	}
	b.write("slurm/slurm.conf", fmt.Sprintf(slurmConfig, s.dir, s.Login.name, lines.String()))
	b.write("slurm/cgroup.conf", cgroupConfig)
	for _, h := range b.hosts {
		s.daemon(h, "munged", "--force", "--key-file="+s.dir+"/munge.key", "--socket=/run/munge.sock", "--pid-file=/run/munged.pid",
			"--log-file="+s.dir+"/munged-"+h.name+".log", "--seed-file=/run/munged.seed")
	}
	s.daemon(s.Login, "slurmctld", "-f", s.Config())
	for _, h := range s.Nodes {
		s.Serve(h)
	}
	s.await()
	return s
}

// Config returns the file that SLURM_CONF names for Slurm's commands.
func (s *Slurm) Config() string { return filepath.Join(s.dir, "slurm.conf") }

// Env returns the environment of Slurm's commands: that of this process without the
// variables of other jobs.
func (s *Slurm) Env() (env []string) {
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SLURM_") && !strings.HasPrefix(v, "GRUN_") {
			env = append(env, v)
		}
	}
	return append(env, "SLURM_CONF="+s.Config())
}

// Command returns a command for the login host.
func (s *Slurm) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = s.Env()
	return cmd
}

// Run runs a command on the login host, and returns all that it prints.
func (s *Slurm) Run(name string, args ...string) (string, error) {
	var out strings.Builder
	cmd := s.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := s.Login.Run(cmd)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return strings.TrimSpace(out.String()), err
}

// Serve starts the slurmd of a node.
func (s *Slurm) Serve(node *Host) { s.daemon(node, "slurmd", "-f", s.Config(), "-N", node.name) }

// daemon starts a daemon. Its first process returns when the daemon serves.
func (s *Slurm) daemon(h *Host, name string, args ...string) {
	s.bed.t.Helper()
	path, err := exec.LookPath(name)
	s.bed.must(err, "%s", name)
	cmd := exec.Command(path, args...)
	cmd.Env = s.Env()
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := h.Run(cmd); err != nil {
		s.bed.t.Fatalf("hosts: %s of host %s: %v: %s\n%s", name, h.name, err, log, s.Logs())
	}
}

// await returns when all nodes are idle.
func (s *Slurm) await() {
	s.bed.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) { // sinfo does not wait
		out, err := s.Run("sinfo", "-h", "-N", "-o", "%T")
		if states := strings.Fields(out); err == nil && len(states) == len(s.Nodes) && strings.Trim(out, "idle\n") == "" {
			return
		}
		if time.Since(began) > 5*time.Minute {
			s.bed.t.Fatalf("hosts: the nodes of Slurm are not idle: %v, %v\n%s", out, err, s.Logs())
		}
	}
}

// Logs returns the ends of the daemons' logs.
func (s *Slurm) Logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.log")) // the pattern is good
	for _, file := range files {
		text, _ := os.ReadFile(file) // the daemon may not have begun it
		fmt.Fprintf(&all, "--- %s\n%s", filepath.Base(file), text[max(0, len(text)-4<<10):])
	}
	return all.String()
}
