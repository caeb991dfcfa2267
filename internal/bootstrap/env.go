package bootstrap

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// The environment of a rank. grun sets the variables down to EnvErrorPipe for each rank;
// users set those down to EnvStartTimeout where they start ranks without grun.
const (
	EnvJobID        = "GRUN_JOB_ID"        // unique name of the job
	EnvLocalRank    = "GRUN_LOCAL_RANK"    // number among the ranks of this host
	EnvLocalSize    = "GRUN_LOCAL_SIZE"    // ranks on this host
	EnvLocalCores   = "GRUN_LOCAL_CORES"   // cores of this host that they share
	EnvHost         = "GRUN_HOST"          // name of this rank's host in the job; ranks with different names share no memory
	EnvRank         = "GRUN_RANK"          // 0 to size-1, or any
	EnvSize         = "GRUN_SIZE"          // ranks in the job
	EnvAddr         = "GRUN_ADDR"          // host:port of the rendezvous
	EnvSecret       = "GRUN_SECRET"        // SecretSize bytes in hex; never on a command line
	EnvReservations = "GRUN_RESERVATIONS"  // the file in which ranks of this host reserve memory, see memory.Reservations; may lack
	EnvErrorPipe    = "GRUN_ERROR_PIPE"    // the pipe that takes the error which ends a rank, see FinalError; may lack
	EnvSecretFile   = "GRUN_SECRET_FILE"   // the file with the secret, which no other user can read
	EnvRun          = "GRUN_RUN"           // any text, the same at all ranks, that tells runs with one secret apart; may lack
	EnvStartTimeout = "GRUN_START_TIMEOUT" // bound of the time in which all ranks join, for instance 30s
	EnvVerbose      = "GRUN_VERBOSE"       // 1: each rank prints how it joined; or 0
	EnvConnections  = "GRUN_CONNECTIONS"   // of one large transfer over tcp: 1 to 16
	EnvProvider     = "GRUN_PROVIDER"      // auto, or a list such as shm,ibv,tcp
	EnvHeap         = "GRUN_HEAP"          // size of the arena, for instance 1GiB
	EnvAtomics      = "GRUN_ATOMICS"       // cpu or nic
	EnvRDMA         = "GRUN_RDMA"          // device=mlx5_0,port=1 and more, see ibv.ParseConfig
	EnvFMAMax       = "GRUN_FMA_MAX"       // largest transfer by CPU stores; 0 queues everything
	EnvStats        = "GRUN_STATS"         // 1: report statistics when closing; or 0
	EnvPeerTimeout  = "GRUN_PEER_TIMEOUT"  // silence after which a peer is unreachable, for instance 30s
	EnvIface        = "GRUN_IFACE"         // interface or subnet on which tcp listens, for instance eth0 or 10.1.0.0/16
	EnvSSH          = "GRUN_SSH"           // grun's command that reaches other hosts, in place of ssh
	EnvTLS          = "GRUN_TLS"           // 1: encrypt connections with the rendezvous and over tcp; or 0
	EnvHosts        = "GRUN_HOSTS"         // a name for each rank's host, for instance a,a,b; without it ranks find out
)

// SecretSize is the length of a job's secret in bytes.
const SecretSize = 32

// anyWord is the value of EnvRank with which the rendezvous chooses the number.
const anyWord = "any"

// Env holds a rank's place in a job, as its launcher has set it.
type Env struct {
	Launcher             string   // the row of the table of launchers that set it
	Hosted               bool     // rank 0 hosts the rendezvous, not a launcher
	Patient              bool     // the name in Addr may lead to a foreign rendezvous for a while
	JobID                string   // "" without grun
	Store                Store    // says where rank 0 hosts the rendezvous; nil: at Addr
	Manager              *Manager // that started this process, after Enter; nil: it does not say
	Rank, Size           int      // Rank may be AnyRank if Hosted
	LocalRank, LocalSize int      // LocalSize 0: the ranks find out
	LocalCores           int
	Host                 string // name of this rank's host in the job; "": none
	Addr                 string // host:port of the rendezvous; with a Store several, apart by commas, or ""
	Secret               []byte
	TLS                  bool   // the rank joins by TLS: an option, which the launcher does not set
	Reservations         string // path of the memfd of memory.Reservations; "": none
	ErrorPipe            string // path of the pipe for final errors; "": none
}

// misplaced returns the error of a variable that grun sets.
func misplaced(name, value, want string) error {
	return &EnvError{name, value, "want " + want + "; start the program with grun, or unset " + EnvJobID}
}

// grunEnv reads the variables that grun has set.
func grunEnv(lookup lookup) (env Env, err error) {
	env.JobID, _ = lookup(EnvJobID)
	env.Reservations, _ = lookup(EnvReservations)
	env.ErrorPipe, _ = lookup(EnvErrorPipe)
	env.Host, _ = lookup(EnvHost)
	for _, field := range []struct {
		name string
		to   *int
	}{
		{EnvRank, &env.Rank}, {EnvSize, &env.Size},
		{EnvLocalRank, &env.LocalRank}, {EnvLocalSize, &env.LocalSize}, {EnvLocalCores, &env.LocalCores},
	} {
		text, _ := lookup(field.name)
		n, convErr := strconv.Atoi(text)
		if convErr != nil || n < 0 {
			return Env{}, misplaced(field.name, text, "a number from 0")
		}
		*field.to = n
	}
	if env.Addr, _ = lookup(EnvAddr); env.Addr == "" {
		return Env{}, misplaced(EnvAddr, "", "host:port")
	}
	text, _ := lookup(EnvSecret)
	if env.Secret, err = hex.DecodeString(text); err != nil || len(env.Secret) != SecretSize {
		return Env{}, misplaced(EnvSecret, "", "32 bytes in hex")
	}
	return env, env.check()
}

// check compares the numbers with each other. Each is within its own bounds by then.
func (e Env) check() error {
	if e.Rank >= e.Size {
		return misplaced(EnvRank, strconv.Itoa(e.Rank), "less than "+EnvSize)
	}
	if e.LocalSize > e.Size {
		return misplaced(EnvLocalSize, strconv.Itoa(e.LocalSize), "at most "+EnvSize)
	}
	if e.LocalRank >= e.LocalSize {
		return misplaced(EnvLocalRank, strconv.Itoa(e.LocalRank), "less than "+EnvLocalSize)
	}
	if e.LocalCores < 1 {
		return misplaced(EnvLocalCores, strconv.Itoa(e.LocalCores), "at least 1")
	}
	return nil
}

// SetsVar reports whether grun sets a variable itself, for each rank.
func SetsVar(name string) bool {
	return slices.ContainsFunc(Env{}.Vars(), func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// Vars is the inverse of FromEnv: it returns the environment variables of e, each
// as NAME=value.
func (e Env) Vars() []string {
	return []string{
		EnvJobID + "=" + e.JobID,
		EnvRank + "=" + strconv.Itoa(e.Rank),
		EnvSize + "=" + strconv.Itoa(e.Size),
		EnvLocalRank + "=" + strconv.Itoa(e.LocalRank),
		EnvLocalSize + "=" + strconv.Itoa(e.LocalSize),
		EnvLocalCores + "=" + strconv.Itoa(e.LocalCores),
		EnvHost + "=" + e.Host,
		EnvAddr + "=" + e.Addr,
		EnvSecret + "=" + hex.EncodeToString(e.Secret),
		EnvReservations + "=" + e.Reservations,
		EnvErrorPipe + "=" + e.ErrorPipe,
	}
}
