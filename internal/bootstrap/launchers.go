package bootstrap

import (
	"os"
	"strconv"
	"strings"
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

// A launcher is a way in which a process gets its place in a job.
type launcher struct {
	name  string
	found func(lookup) bool
	read  func(lookup) (Env, error)
}

// launchers returns the table of launchers. The first one that is found counts.
//
//	grun        GRUN_JOB_ID
//	hand        GRUN_RANK, GRUN_SIZE, or GRUN_ADDR without RANK and WORLD_SIZE
//	torchrun    RANK and WORLD_SIZE, with MASTER_ADDR and MASTER_PORT or with GRUN_ADDR in their place
//
// A stray RANK or WORLD_SIZE alone starts nothing.
func launchers() []launcher {
	return []launcher{
		{"grun", func(l lookup) bool { return l.set(EnvJobID) }, grunEnv},
		{"hand", func(l lookup) bool {
			return l.set(EnvRank) || l.set(EnvSize) || l.set(EnvAddr) && !l.set(torchRank, torchSize)
		}, handEnv},
		{"torchrun", func(l lookup) bool {
			return l.set(torchRank, torchSize) && (l.set(torchHost, torchPort) || l.set(EnvAddr))
		}, torchEnv},
	}
}

// FromEnv reads the place of this process in a job from the environment. ok is false if
// no launcher started it; an incomplete or impossible environment is an *EnvError.
func FromEnv() (env Env, ok bool, err error) { return fromEnv(os.LookupEnv) }

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

// torchEnv reads the variables of torchrun.
func torchEnv(lookup lookup) (env Env, err error) {
	env.Hosted = true
	if env.Rank, err = number(lookup, torchRank, 0, "the number of this rank"); err != nil {
		return Env{}, err
	}
	if env.Size, err = number(lookup, torchSize, 1, "the number of ranks in the job"); err != nil {
		return Env{}, err
	}
	if env.Addr, _ = lookup(EnvAddr); env.Addr == "" {
		host, _ := lookup(torchHost)
		port, _ := lookup(torchPort)
		env.Addr = hostPort(host, port)
	}
	return env.hosted(lookup, torchRank)
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

// Foreign names, for the user, another launcher that started this process, or
// returns "". It returns a text at one process of each job only.
func Foreign() string { return foreign(os.LookupEnv) }

func foreign(lookup lookup) string {
	if _, ok, _ := fromEnv(lookup); ok {
		return ""
	}
	for _, name := range []string{"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"} {
		switch rank, ok := lookup(name); {
		case ok && rank == "0":
			return "started by another launcher (" + name + " is set): each process is a job of its own with one rank; start it with grun -n N ./prog"
		case ok:
			return ""
		}
	}
	return ""
}

// Incomplete names, for GRUN_VERBOSE, variables of torchrun that are set without the rest, or
// returns "".
func Incomplete() string { return incomplete(os.LookupEnv) }

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
