package testjob

import "github.com/gopgas/gopgas/internal/testwatch"

// envBody makes the test binary run one of its bodies instead of the tests.
const envBody = "GOPGAS_TESTJOB_BODY"

// Variable returns the variable by which a test binary runs a body, as a rank of any job.
func Variable(body string) string { return envBody + "=" + body }

// A Job describes how processes run a body.
type Job struct {
	Ranks    int
	Provider string   // "" takes grun's default: shm on one host
	Queued   bool     // mapping is off
	Atomics  string   // as in Config
	Hosts    string   // as in Config
	Env      []string // NAME=value, for the ranks, in addition
	Idle     bool     // the job waits most of its time: it runs beside jobs of other tests
}

// Processes lists the ways to run jobs of n processes. The race detector looks into each of them
// alone and sees no memory that they share: there it lists tcp.
func Processes(n int) []Job {
	if testwatch.Race {
		return []Job{{Provider: "tcp", Ranks: n}}
	}
	list := []Job{{Provider: "shm", Ranks: n}, {Provider: "shm", Queued: true, Ranks: n}, {Provider: "tcp", Ranks: n}}
	if onDevices {
		list = append(list, Job{Provider: "ibv", Ranks: n}, Job{Provider: "ibv", Atomics: "nic", Ranks: n})
	}
	return list
}

// String returns the name of the job, which is that of its subtest.
func (j Job) String() string {
	name := "processes-" + j.Provider
	if j.Queued {
		name += "-queued"
	}
	if j.Atomics != "" {
		name += "-atomics"
	}
	if j.Hosts != "" {
		name += "-" + j.Hosts
	}
	return name
}
