package bootstrap

import (
	"os"
	"strconv"
	"strings"

	"github.com/gopgas/gopgas/internal/pmi"
)

// lookup returns the value of a variable, as os.LookupEnv does.
type lookup func(name string) (value string, ok bool)

// set reports whether all names have a value.
func (l lookup) set(names ...string) bool {
	for _, name := range names {
		if value, _ := l(name); value == "" {
			return false
		}
	}
	return true
}

// The variables that torchrun and other launchers of training jobs set.
const (
	torchRank = "RANK"
	torchSize = "WORLD_SIZE"
	torchHost = "MASTER_ADDR"
	torchPort = "MASTER_PORT"
)

// The variables that Open MPI's mpirun sets. All ranks of one host have one directory.
const (
	mpirunRank  = "OMPI_COMM_WORLD_RANK"
	mpirunSize  = "OMPI_COMM_WORLD_SIZE"
	mpirunLocal = "OMPI_COMM_WORLD_LOCAL_SIZE"
	mpirunJob   = "PMIX_NAMESPACE"
	mpirunDir   = "PMIX_SERVER_TMPDIR"

	// mpirunByHand says what to type where mpirun's variables lead to no rank 0.
	mpirunByHand = "make a secret by " + makeSecret + ", and start the job by mpirun -x " + EnvAddr + "=HOST:7000 -x " + EnvSecretFile +
		"=job.secret, where HOST is the host of rank 0"
)

// A launcher is a way in which a process gets its place in a job.
type launcher struct {
	name  string
	found func(lookup) bool
	read  func(lookup) (Env, error)
}

// launchers returns the table of launchers. The first one that is found counts.
//
//	grun        GRUN_JOB_ID
//	kubernetes  JOB_COMPLETION_INDEX and GRUN_SIZE, without GRUN_RANK
//	hand        GRUN_RANK, GRUN_SIZE, or GRUN_ADDR without the numbers that another row has
//	torchrun    RANK and WORLD_SIZE, with MASTER_ADDR and MASTER_PORT or with GRUN_ADDR in their place
//	PMI         PMI_FD with PMI_RANK and PMI_SIZE, or PMI_PORT with PMI_ID
//	mpirun      OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE
//	srun        SLURM_PROCID and SLURM_STEP_NUM_TASKS, with GRUN_ADDR or a secret
//
// A stray RANK or WORLD_SIZE alone starts nothing.
func launchers() []launcher {
	return []launcher{
		{"grun", func(l lookup) bool { return l.set(EnvJobID) }, grunEnv},
		{"kubernetes", func(l lookup) bool { return l.set(kubernetesIndex, EnvSize) && !l.set(EnvRank) }, kubernetesEnv},
		{"hand", func(l lookup) bool {
			return l.set(EnvRank) || l.set(EnvSize) || l.set(EnvAddr) && !l.numbered()
		}, handEnv},
		{"torchrun", func(l lookup) bool {
			return l.set(torchRank, torchSize) && (l.set(torchHost, torchPort) || l.set(EnvAddr))
		}, torchEnv},
		{"PMI", func(l lookup) bool { return pmi.Found(l) }, pmiEnv},
		{"mpirun", func(l lookup) bool { return l.set(mpirunRank, mpirunSize) }, mpirunEnv},
		{"srun", srunFound, srunEnv},
	}
}

// numbered reports whether another launcher has numbered this process.
func (l lookup) numbered() bool {
	return l.set(torchRank, torchSize) || pmi.Found(l) || l.set(mpirunRank, mpirunSize) || l.set(srunRank, srunSize)
}

// FromEnv reads the place of this process in a job from the environment. ok is false if
// no launcher started it; an incomplete or impossible environment is an *EnvError.
func FromEnv() (env Env, ok bool, err error) { return fromEnv(os.LookupEnv) }

// fromEnv reads the environment as the first launcher of the table that finds its variables.
func fromEnv(lookup lookup) (env Env, ok bool, err error) {
	for _, l := range launchers() {
		if l.found(lookup) {
			env, err = l.read(lookup)
			env.Launcher = l.name
			return env, true, err
		}
	}
	return Env{}, false, nil
}

// handEnv reads the variables of a process that a user started without grun.
func handEnv(lookup lookup) (Env, error) {
	env := Env{Hosted: true, Rank: AnyRank}
	var err error
	if env.Addr, _ = lookup(EnvAddr); env.Addr == "" {
		return Env{}, &EnvError{EnvAddr, "", "want host:port of rank 0, since " + EnvRank + " or " + EnvSize + " is set; or start the program with grun"}
	}
	if env.Size, err = number(lookup, EnvSize, 1, "the number of ranks in the job"); err != nil {
		return Env{}, err
	}
	if text, _ := lookup(EnvRank); text != "" && text != anyWord {
		if env.Rank, err = number(lookup, EnvRank, 0, "the number of this rank, or "+anyWord); err != nil {
			return Env{}, err
		}
	}
	return env.hosted(lookup, EnvRank)
}

// numberedEnv reads the variables with rank and size of another launcher.
func numberedEnv(lookup lookup, rank, size string) (env Env, err error) {
	env.Hosted = true
	if env.Rank, err = number(lookup, rank, 0, "the number of this rank"); err != nil {
		return Env{}, err
	}
	if env.Size, err = number(lookup, size, 1, "the number of ranks in the job"); err != nil {
		return Env{}, err
	}
	env.Addr, _ = lookup(EnvAddr)
	return env, nil
}

// torchEnv reads the variables of torchrun.
func torchEnv(lookup lookup) (env Env, err error) {
	if env, err = numberedEnv(lookup, torchRank, torchSize); err != nil {
		return Env{}, err
	}
	if env.Addr == "" {
		host, _ := lookup(torchHost)
		port, _ := lookup(torchPort)
		env.Addr = hostPort(host, port)
	}
	return env.hosted(lookup, torchRank)
}

// pmiEnv reads the variables of a process manager, which may tell rank and size later.
// Rank 0 listens at any address, and makes a secret, unless the user gives them.
func pmiEnv(lookup lookup) (env Env, err error) {
	if lookup.set(pmi.EnvFD) {
		env, err = numberedEnv(lookup, pmi.EnvRank, pmi.EnvSize)
	} else {
		env = Env{Hosted: true, Rank: AnyRank}
		env.Addr, _ = lookup(EnvAddr)
	}
	env.Store = pmiStore{}
	if err != nil {
		return Env{}, err
	}
	return env.stored(lookup, pmi.EnvRank)
}

// mpirunEnv reads the variables of Open MPI's mpirun. The ranks of one host meet by a
// directory. mpirun has nothing that ranks of several hosts could share without C.
func mpirunEnv(lookup lookup) (Env, error) {
	env, err := numberedEnv(lookup, mpirunRank, mpirunSize)
	if err != nil {
		return Env{}, err
	}
	if env.Addr != "" {
		return env.hosted(lookup, mpirunRank)
	}
	if local, _ := lookup(mpirunLocal); local != strconv.Itoa(env.Size) {
		return Env{}, &EnvError{EnvAddr, "", "this job is on several hosts: " + mpirunByHand}
	}
	dir, _ := lookup(mpirunDir)
	job, _ := lookup(mpirunJob)
	if dir == "" || job == "" || strings.ContainsAny(job, "/\x00") {
		return Env{}, &EnvError{EnvAddr, "", "without " + mpirunDir + " and " + mpirunJob + ": " + mpirunByHand}
	}
	env.Store = dirStore{dir, job}
	return env.stored(lookup, mpirunRank)
}

// stored completes the place of a process in a job with a Store.
func (e Env) stored(lookup lookup, rankName string) (Env, error) {
	if lookup.set(EnvSecret) || lookup.set(EnvSecretFile) {
		var err error
		if e.Secret, err = secret(lookup); err != nil {
			return Env{}, err
		}
	}
	if e.Addr != "" {
		if _, _, err := split(e.Addr); err != nil {
			return Env{}, &EnvError{EnvAddr, e.Addr, errAddress.Error()}
		}
	}
	if e.Rank != AnyRank && e.Rank >= e.Size {
		return Env{}, &EnvError{rankName, strconv.Itoa(e.Rank), "want less than the number of ranks, " + strconv.Itoa(e.Size)}
	}
	return e, nil
}

// hostPort joins a host and a port. The host may be an IPv6 address with or without
// brackets.
func hostPort(host, port string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return host + ":" + port
}

// number reads a variable with a number of at least least.
func number(lookup lookup, name string, least int, what string) (int, error) {
	text, _ := lookup(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > maxRanks {
		return 0, &EnvError{name, text, "want " + what + ", from " + strconv.Itoa(least)}
	}
	return n, nil
}

// maxRanks bounds the size of a job, so that a slip of a user's takes no memory.
const maxRanks = 1 << 20

// hosted completes the place of a process in a job whose rank 0 hosts the rendezvous.
func (e Env) hosted(lookup lookup, rankName string) (Env, error) {
	if e.Rank >= e.Size {
		return Env{}, &EnvError{rankName, strconv.Itoa(e.Rank), "want less than the number of ranks, " + strconv.Itoa(e.Size)}
	}
	if _, _, err := split(e.Addr); err != nil {
		name := EnvAddr
		if !lookup.set(EnvAddr) {
			name = torchHost + ":" + torchPort
		}
		return Env{}, &EnvError{name, e.Addr, errAddress.Error()}
	}
	var err error
	if e.Secret, err = secret(lookup); err != nil {
		return Env{}, err
	}
	return e, nil
}

// Foreign names, for the user, another launcher that started this process, and says what to
// type; or it returns "". It returns a text at one process of each job only.
func Foreign() string { return foreign(os.LookupEnv) }

// foreign returns a hint for a process that a launcher started which gopgas cannot join, else "".
// Rank 0 alone gets it, so that a job prints it once.
func foreign(lookup lookup) string {
	if _, ok, _ := fromEnv(lookup); ok {
		return ""
	}
	size, _ := lookup(srunSize)
	for _, l := range []struct{ rank, start string }{
		{"PMIX_RANK", "srun --mpi=pmi2, mpiexec.hydra, mpirun of Open MPI, or grun -n N"},
		{srunRank, "srun --mpi=pmi2, or grun -n N"},
		{"PMI_RANK", "a process manager that sets PMI_FD, or grun -n N"},
	} {
		rank, ok := lookup(l.rank)
		if !ok || l.rank == srunRank && (size == "" || size == "1") {
			continue
		}
		if rank != "0" {
			return ""
		}
		return "started by another launcher (" + l.rank + " is set): each process is a job of its own with one rank; start it with " + l.start
	}
	return ""
}

// Incomplete names, for GRUN_VERBOSE, variables of torchrun that are set without the rest, or
// returns "".
func Incomplete() string { return incomplete(os.LookupEnv) }

// incomplete returns which variables of a start by hand are set and which lack, "" if all or none
// are set.
func incomplete(lookup lookup) string {
	var set, unset []string
	for _, name := range []string{torchRank, torchSize, torchHost, torchPort} {
		if lookup.set(name) {
			set = append(set, name)
		} else {
			unset = append(unset, name)
		}
	}
	if len(set) == 0 || len(unset) == 0 {
		return ""
	}
	return strings.Join(set, ", ") + " without " + strings.Join(unset, ", ")
}
