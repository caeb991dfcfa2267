package agent

import "strings"

// foreign lists beginnings of variables by which another launcher numbers this process. All
// ranks would inherit one number: a program of MPI would take itself for that process, or
// look for its launcher. Variables of a job as a whole stay, such as SLURM_JOB_ID, and so do
// settings of users.
var foreign = []string{
	// Process managers that speak PMI: Hydra, Slurm, Flux.
	"PMI_", "HYDI_", "MPI_LOCALNRANKS=", "MPI_LOCALRANKID=",
	// Open MPI's mpirun, and srun --mpi=pmix.
	"OMPI_COMM_WORLD_", "OMPI_UNIVERSE_SIZE=", "PMIX_",
	// Tasks and steps of srun. The step may be an agent's.
	"SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_GTIDS=", "SLURM_TASK_PID=", "SLURM_STEP", "SLURM_MPI_TYPE=", "SLURM_PMI", "SLURM_PTY_",
}

// settings begin like a variable in foreign, but are a user's.
const settings = "PMIX_MCA_"

// withoutForeign returns an environment without the variables in foreign.
func withoutForeign(env []string) (vars []string) {
	for _, v := range env {
		if strings.HasPrefix(v, settings) || !hasAnyPrefix(v, foreign) {
			vars = append(vars, v)
		}
	}
	return vars
}

func hasAnyPrefix(v string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	return false
}
