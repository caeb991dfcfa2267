package peers

import (
	"slices"
	"strconv"
)

// Configs returns the limit of the machine and each library in each configuration that can be
// its best.
func Configs() []Config {
	shm, tcp, both := []string{"shm"}, []string{"tcp"}, []string{"shm", "tcp"}
	one, all := []string{"rma"}, []string{"rma", "coll", "team"}
	return []Config{
		{Name: "limit", Limit: true, programs: []string{"bare"}, over: both, command: func(*Job) []string { return nil }},
		{Name: "openmpi-sm", programs: all, library: "openmpi", over: shm, command: openmpi(ob1("sm"))},
		{Name: "openmpi-rdma", programs: one, library: "openmpi", over: shm, command: openmpi(ob1("rdma"))},
		{Name: "openmpi-collsm", programs: []string{"coll", "team"}, library: "openmpi", over: shm, command: openmpi(append(ob1("sm"), mca("coll_sm_priority", "100")...))},
		{Name: "openmpi-pt2pt", programs: one, library: "openmpi", over: shm, command: openmpi(ob1("pt2pt"))},
		{Name: "openmpi-tcp", programs: all, library: "openmpi", over: tcp,
			command: openmpi(mca("pml", "ob1", "btl", "self,tcp", "btl_tcp_if_include", "lo", "osc", "pt2pt"))},
		{Name: "openmpi-ucx", programs: all, library: "openmpi", over: both,
			command: openmpi(mca("pml", "ucx", "osc", "ucx", "pml_ucx_tls", "any", "pml_ucx_devices", "any", "osc_ucx_tls", "any", "osc_ucx_devices", "any"))},
		{Name: "oshmem-ucx", programs: []string{"shmem"}, library: "oshmem", over: both, command: oshmem},
		{Name: "mpich-ucx", programs: all, library: "mpich", over: both, command: mpich},
	}
}

func ob1(osc string) []string { return mca("pml", "ob1", "btl", "self,vader", "osc", osc) }

// mca returns flags of Open MPI's parameters.
func mca(pairs ...string) (flags []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		flags = append(flags, "--mca", pairs[i], pairs[i+1])
	}
	return flags
}

// transports returns the environment by which UCX uses the same way as a provider.
func transports(provider string) []string {
	if provider == "tcp" {
		return []string{"UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo"}
	}
	return []string{"UCX_TLS=self,posix,sysv,cma"}
}

// environment returns a command that sets the environment of a launcher. Open MPI asks for two
// variables where root starts jobs.
func environment(j *Job) []string {
	return append([]string{"env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}, transports(j.Provider)...)
}

// binding returns flags of Open MPI's launchers.
func binding(j *Job) []string {
	switch {
	case j.crowded():
		return append([]string{"--oversubscribe", "--bind-to", "none"}, mca("mpi_yield_when_idle", "1")...)
	case j.Bound:
		return []string{"--bind-to", "core"}
	}
	return []string{"--bind-to", "none"}
}

// openmpi returns the command line of Open MPI with more flags.
func openmpi(flags []string) func(j *Job) []string {
	return func(j *Job) []string {
		return slices.Concat(environment(j), []string{"mpirun.openmpi", "-np", strconv.Itoa(j.Ranks)}, binding(j), flags)
	}
}

// oshmem returns the command line of Open MPI's OpenSHMEM.
func oshmem(j *Job) []string {
	return slices.Concat(environment(j), []string{"oshrun", "-np", strconv.Itoa(j.Ranks)}, binding(j),
		mca("spml", "ucx", "spml_ucx_tls", "any", "pml", "ucx", "pml_ucx_tls", "any", "pml_ucx_devices", "any"),
		[]string{"-x", "SHMEM_SYMMETRIC_HEAP_SIZE=512M"})
}

// mpich returns the command line of MPICH.
func mpich(j *Job) []string {
	command := environment(j)
	if j.Provider == "tcp" {
		command = append(command, "MPIR_CVAR_NOLOCAL=1")
	} else {
		command = slices.DeleteFunc(command, func(v string) bool { return v == transports("shm")[0] }) // MPICH has shared memory of its own
	}
	command = append(command, "mpirun.mpich", "-np", strconv.Itoa(j.Ranks))
	if j.Bound && !j.crowded() {
		command = append(command, "-bind-to", "core")
	}
	return command
}
