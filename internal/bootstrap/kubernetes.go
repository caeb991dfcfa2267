package bootstrap

import "strconv"

// kubernetesIndex is the variable that an Indexed Job of Kubernetes sets in each pod.
const kubernetesIndex = "JOB_COMPLETION_INDEX"

// kubernetesRun is the field of a pod that names its run. Before 1.27 it is kubernetesOldRun. A
// label that a pod lacks makes an empty variable.
const (
	kubernetesRun    = "metadata.labels['batch.kubernetes.io/controller-uid']"
	kubernetesOldRun = "metadata.labels['controller-uid']"
)

// kubernetesEnv reads the variables of a pod. Kubernetes sets the index; the manifest of the
// job sets the rest. Names of pods may be late, or lead to pods of an earlier job for a while. So
// rank 0 listens at all addresses of its pod and looks no name up, and the other ranks try again.
// A pod of an earlier run that had the same secret would take them. So each run has a name.
func kubernetesEnv(lookup lookup) (env Env, err error) {
	env.Hosted, env.Patient = true, true
	if env.Rank, err = number(lookup, kubernetesIndex, 0, "the index of this pod"); err != nil {
		return Env{}, err
	}
	if env.Size, err = number(lookup, EnvSize, 1, "the number of ranks in the job, which is that of its completions"); err != nil {
		return Env{}, err
	}
	if env.Addr, _ = lookup(EnvAddr); env.Addr == "" {
		return Env{}, &EnvError{EnvAddr, "", "want the name of pod 0 and a port: JOB-0.SERVICE:7000, with a headless service of the job's pods"}
	}
	if !lookup.set(EnvRun) {
		return Env{}, &EnvError{EnvRun, "", "want a text that only the pods of this run have: the uid of the Job, by fieldRef with fieldPath " + kubernetesRun + ", or before Kubernetes 1.27 " + kubernetesOldRun}
	}
	if env, err = env.hosted(lookup, kubernetesIndex); err != nil || env.Rank != 0 {
		return env, err
	}
	_, port, err := split(env.Addr)
	env.Addr = hostPort("", strconv.Itoa(int(port)))
	return env, err
}
