//go:build linux

package agent

import "strings"

// foreign lists variables by which another launcher numbers this process, or beginnings of
// their names. All ranks would inherit one number: a program of MPI would take itself for that
// process, or look for its launcher. Variables of a job as a whole stay, such as SLURM_JOB_ID,
// and so do settings of users, such as PMI_DEBUG and PMIX_MCA_gds.
var foreign = []string{
	// Process managers that speak PMI: Hydra, Slurm, Flux, PALS.
	"PMI_FD=", "PMI_PORT=", "PMI_ID=", "PMI_RANK=", "PMI_SIZE=", "PMI_JOBID=", "PMI_APPNUM=", "PMI_SPAWNED=", "PMI_KVS", "PMI_UNIVERSE_SIZE=", "PMI_LOCAL_",
	"PMI_VERSION=", "PMI_SUBVERSION=", "PMI_TOTALVIEW=", "PMI_CONTROL_",
	"HYDI_", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=",
	// Open MPI's mpirun, and srun --mpi=pmix.
	"OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=",
	"PMIX_NAMESPACE=", "PMIX_RANK=", "PMIX_ID=", "PMIX_VERSION=", "PMIX_HOSTNAME=", "PMIX_SERVER_", "PMIX_SYSTEM_TMPDIR=", "PMIX_SECURITY_MODE=",
	"PMIX_BFROP_BUFFER_TYPE=", "PMIX_GDS_MODULE=", "PMIX_PTL_MODULE=", "PMIX_DSTORE_", "PMIX_KEEPALIVE_PIPE=", "PMIX_LAUNCHER_",
	// Tasks and steps of srun. The step may be an agent's.
	"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_GTIDS=", "SLURM_TASK_PID=", "SLURM_STEP", "SLURM_MPI_TYPE=", "SLURM_PMI", "SLURM_PTY_",
}

// withoutForeign returns an environment without the variables in foreign.
func withoutForeign(env []string) (vars []string) {
	for _, v := range env {
		if !hasAnyPrefix(v, foreign) {
			vars = append(vars, v)
		}
	}
	return vars
}

// hasAnyPrefix reports whether v begins with one of prefixes.
func hasAnyPrefix(v string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}
