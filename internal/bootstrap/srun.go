package bootstrap

import (
	"strconv"
	"strings"
)

// The variables of a task of Slurm's srun.
const (
	srunRank    = "SLURM_PROCID"
	srunSize    = "SLURM_STEP_NUM_TASKS"
	srunNodes   = "SLURM_STEP_NODELIST" // eco[1-2,7]; rank 0 runs on the first
	srunJob     = "SLURM_JOB_ID"
	srunStep    = "SLURM_STEP_ID"
	srunRestart = "SLURM_RESTART_COUNT" // of a batch job that was requeued
	srunShell   = "SLURM_PTY_PORT"      // set in the shell of srun --pty, whose programs are no tasks
)

// Ports of jobs that srun starts without PMI: those below the ports that kernels hand out.
const (
	srunFirstPort = 20000
	srunPorts     = 10000
	srunStride    = 61 // the steps of a job that have ports of their own beside the next job's
)

// srunFound reports whether this process is a task of srun whose user gives what its ranks
// need to meet.
func srunFound(l lookup) bool {
	size, _ := l(srunSize)
	return l.set(srunRank, srunSize) && (l.set(EnvAddr) || size != "1" && !l.set(srunShell) && (l.set(EnvSecretFile) || l.set(EnvSecret)))
}

// srunEnv reads the variables of a task of Slurm without PMI. Slurm gives no secret: users
// do. Without an address rank 0 listens on its node, at a port that job and step choose.
func srunEnv(lookup lookup) (Env, error) {
	env, err := numberedEnv(lookup, srunRank, srunSize)
	if err != nil {
		return Env{}, err
	}
	chosen := env.Addr == ""
	if chosen {
		if env.Addr, err = srunAddr(lookup); err != nil {
			return Env{}, err
		}
	}
	if env, err = env.hosted(lookup, srunRank); err == nil && chosen {
		env.Secret = runSecret(lookup, env.Secret, srunJob, srunStep, srunRestart) // two runs may meet at one port
	}
	return env, err
}

// srunAddr returns the address of rank 0. Steps that run at once in one job have different
// ports, as have jobs with near numbers.
func srunAddr(lookup lookup) (string, error) {
	var sum uint64
	for _, name := range []string{srunJob, srunStep} {
		text, _ := lookup(name)
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return "", &EnvError{name, text, "want a number; or set " + EnvAddr + " to HOST:PORT of rank 0"}
		}
		sum = sum*srunStride + n
	}
	list, _ := lookup(srunNodes)
	name, ok := firstNode(list)
	if !ok {
		return "", &EnvError{srunNodes, list, "want a list of nodes; or set " + EnvAddr + " to HOST:PORT of rank 0"}
	}
	return hostPort(name, strconv.FormatUint(srunFirstPort+sum%srunPorts, 10)), nil
}

// firstNode returns the first name of a list such as eco[01-12,20]-ib,login.
func firstNode(list string) (string, bool) {
	at := strings.IndexAny(list, ",[")
	if at < 0 || list[at] == ',' {
		name, _, _ := strings.Cut(list, ",")
		return name, name != ""
	}
	ranges, rest, closed := strings.Cut(list[at+1:], "]")
	end := strings.IndexAny(ranges, ",-")
	if end < 0 {
		end = len(ranges)
	}
	tail := ""
	if rest != "" && rest[0] != ',' {
		var ok bool
		if tail, ok = firstNode(rest); !ok {
			return "", false
		}
	}
	return list[:at] + ranges[:end] + tail, closed && end > 0
}
