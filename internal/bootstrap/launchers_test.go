package bootstrap

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

var hexSecret = hex.EncodeToString(testSecret)

func TestFromEnvTakesTheFirstLauncherThatIsFound(t *testing.T) {
	grun := Env{JobID: "j", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, LocalCores: 1, Addr: "g:1", Secret: testSecret}.Vars()
	hand := []string{EnvAddr + "=h:2", EnvRank + "=2", EnvSize + "=3", EnvSecret + "=" + hexSecret}
	torch := []string{"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=0", "MASTER_ADDR=::1", "MASTER_PORT=5", EnvSecret + "=" + hexSecret}
	hydra := []string{"PMI_FD=6", "PMI_RANK=1", "PMI_SIZE=4"}
	mpirun := []string{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE=7", "PMIX_SERVER_TMPDIR=/d", "PMIX_RANK=1"}
	srun := []string{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4", EnvAddr + "=h:2", EnvSecret + "=" + hexSecret}
	alone := []string{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=4", "SLURM_JOB_ID=67000000", "SLURM_STEP_ID=2", "SLURM_STEP_NODELIST=eco[07-09,12],x", EnvSecret + "=" + hexSecret}
	pod := []string{EnvSize + "=3", EnvAddr + "=j-0.s:7", EnvSecret + "=" + hexSecret, EnvRun + "=uid"}
	run := runSecret(lookupIn(pod), testSecret, EnvRun)
	for name, c := range map[string]struct {
		vars []string
		want Env
	}{
		"PMI":         {hydra, Env{Launcher: "PMI", Hosted: true, Store: pmiStore{}, Rank: 1, Size: 4}},
		"PMI by port": {[]string{"PMI_PORT=h:1", "PMI_ID=1"}, Env{Launcher: "PMI", Hosted: true, Store: pmiStore{}, Rank: AnyRank}},
		"PMI at grun's address": {append(hydra[:3:3], srun[2:]...),
			Env{Launcher: "PMI", Hosted: true, Store: pmiStore{}, Rank: 1, Size: 4, Addr: "h:2", Secret: testSecret}},
		"PMI and grun":  {append(hydra[:3:3], grun...), Env{Launcher: "grun", JobID: "j", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, LocalCores: 1, Addr: "g:1", Secret: testSecret}},
		"PMI and torch": {append(hydra[:3:3], torch...), Env{Launcher: "torchrun", Hosted: true, Rank: 3, Size: 4, Addr: "[::1]:5", Secret: testSecret}},
		"PMI and hand":  {append(hydra[:3:3], hand...), Env{Launcher: "hand", Hosted: true, Rank: 2, Size: 3, Addr: "h:2", Secret: testSecret}},
		"mpirun":        {mpirun, Env{Launcher: "mpirun", Hosted: true, Store: dirStore{"/d", "7"}, Rank: 1, Size: 4}},
		"mpirun, two hosts": {append(mpirun[:6:6], "OMPI_COMM_WORLD_LOCAL_SIZE=2", EnvAddr+"=h:2", EnvSecret+"="+hexSecret),
			Env{Launcher: "mpirun", Hosted: true, Rank: 1, Size: 4, Addr: "h:2", Secret: testSecret}},
		"srun without address": {alone, Env{Launcher: "srun", Hosted: true, Rank: 1, Size: 4, Addr: "eco07:20002", Secret: runSecret(lookupIn(alone), testSecret, srunJob, srunStep, srunRestart)}},
		"srun":                 {srun, Env{Launcher: "srun", Hosted: true, Rank: 1, Size: 4, Addr: "h:2", Secret: testSecret}},
		"grun":                 {grun, Env{Launcher: "grun", JobID: "j", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, LocalCores: 1, Addr: "g:1", Secret: testSecret}},
		"grun and torch":       {append(torch[:5:5], grun...), Env{Launcher: "grun", JobID: "j", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2, LocalCores: 1, Addr: "g:1", Secret: testSecret}},
		"hand":                 {hand, Env{Launcher: "hand", Hosted: true, Rank: 2, Size: 3, Addr: "h:2", Secret: testSecret}},
		"hand, any rank":       {append(hand[:4:4], EnvRank+"=any"), Env{Launcher: "hand", Hosted: true, Rank: AnyRank, Size: 3, Addr: "h:2", Secret: testSecret}},
		"hand, no rank":        {append(hand[:4:4], EnvRank+"="), Env{Launcher: "hand", Hosted: true, Rank: AnyRank, Size: 3, Addr: "h:2", Secret: testSecret}},
		"hand and torch":       {append(torch, hand...), Env{Launcher: "hand", Hosted: true, Rank: 2, Size: 3, Addr: "h:2", Secret: testSecret}},
		"kubernetes, pod 0":    {append(pod[:4:4], kubernetesIndex+"=0"), Env{Launcher: "kubernetes", Hosted: true, Patient: true, Rank: 0, Size: 3, Addr: ":7", Secret: run}},
		"kubernetes, pod 2":    {append(pod[:4:4], kubernetesIndex+"=2"), Env{Launcher: "kubernetes", Hosted: true, Patient: true, Rank: 2, Size: 3, Addr: "j-0.s:7", Secret: run}},
		"hand, a run":          {append(hand[:4:4], pod[3]), Env{Launcher: "hand", Hosted: true, Rank: 2, Size: 3, Addr: "h:2", Secret: run}},
		"hand in a pod":        {append(hand[:4:4], kubernetesIndex+"=1"), Env{Launcher: "hand", Hosted: true, Rank: 2, Size: 3, Addr: "h:2", Secret: testSecret}},
		"torch":                {torch, Env{Launcher: "torchrun", Hosted: true, Rank: 3, Size: 4, Addr: "[::1]:5", Secret: testSecret}},
		"torch by name":        {append(torch[:6:6], "MASTER_ADDR=node0"), Env{Launcher: "torchrun", Hosted: true, Rank: 3, Size: 4, Addr: "node0:5", Secret: testSecret}},
		"torch at grun's address": {append(torch[:6:6], EnvAddr+"=h:2", "MASTER_PORT="),
			Env{Launcher: "torchrun", Hosted: true, Rank: 3, Size: 4, Addr: "h:2", Secret: testSecret}},
	} {
		got, ok, err := fromEnv(lookupIn(c.vars))
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.Equal(t, c.want, got, name)
	}
}

func TestRunsHaveSecretsOfTheirOwn(t *testing.T) {
	srun := []string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=a", EnvSecret + "=" + hexSecret}
	pod := []string{kubernetesIndex + "=0", EnvSize + "=3", EnvAddr + "=j-0.s:7", EnvSecret + "=" + hexSecret}
	seen := map[string]bool{hexSecret: true}
	runs := [][]string{
		append(srun[:4:4], "SLURM_JOB_ID=7", "SLURM_STEP_ID=61"), append(srun[:4:4], "SLURM_JOB_ID=8", "SLURM_STEP_ID=0"),
		append(srun[:4:4], "SLURM_JOB_ID=8", "SLURM_STEP_ID=0", "SLURM_RESTART_COUNT=1"),
		append(pod[:4:4], EnvRun+"=a"), append(pod[:4:4], EnvRun+"=b"),
	}
	for _, run := range runs {
		env, ok, err := fromEnv(lookupIn(run))
		require.NoError(t, err)
		require.True(t, ok)
		seen[hex.EncodeToString(env.Secret)] = true
	}
	require.Len(t, seen, 1+len(runs))
}

func TestPartOfTorchrunsVariablesStartsNoJob(t *testing.T) {
	all := []string{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=h", "MASTER_PORT=5"}
	for i := range all {
		rest := append(append([]string{}, all[:i]...), all[i+1:]...)
		_, ok, err := fromEnv(lookupIn(rest))
		require.NoError(t, err, rest)
		require.False(t, ok, rest)
		require.NotEmpty(t, incomplete(lookupIn(rest)))
	}
	require.Equal(t, "RANK without WORLD_SIZE, MASTER_ADDR, MASTER_PORT", incomplete(lookupIn(all[:1])))
	require.Empty(t, incomplete(lookupIn(all)))
	require.Empty(t, incomplete(lookupIn(nil)))
}

func TestFromEnvNamesTheWrongVariableOfAJobByHand(t *testing.T) {
	hydra := []string{"PMI_FD=6", "PMI_RANK=1", "PMI_SIZE=4"}
	mpirun := []string{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE=7", "PMIX_SERVER_TMPDIR=/d"}
	hand := []string{EnvAddr + "=h:2", EnvRank + "=2", EnvSize + "=3", EnvSecret + "=" + hexSecret}
	torch := []string{"RANK=3", "WORLD_SIZE=4", "MASTER_ADDR=h", "MASTER_PORT=5", EnvSecret + "=" + hexSecret}
	pod := []string{kubernetesIndex + "=0", EnvSize + "=3", EnvAddr + "=j-0.s:7", EnvSecret + "=" + hexSecret, EnvRun + "=uid"}
	for _, c := range []struct {
		vars []string
		bad  string // replaces a variable
		name string // in the error
	}{
		{hydra, "PMI_SIZE=0", "PMI_SIZE"}, {hydra, "PMI_RANK=4", "PMI_RANK"}, {hydra, EnvSecret + "=ab", EnvSecret}, {hydra, EnvAddr + "=h", EnvAddr},
		{mpirun, "OMPI_COMM_WORLD_LOCAL_SIZE=3", EnvAddr}, {mpirun, "PMIX_SERVER_TMPDIR=", EnvAddr}, {mpirun, "PMIX_NAMESPACE=a/b", EnvAddr},
		{mpirun, EnvAddr + "=h:2", EnvSecretFile}, {mpirun, "OMPI_COMM_WORLD_RANK=x", "OMPI_COMM_WORLD_RANK"},
		{hand, EnvAddr + "=", EnvAddr}, {hand, EnvAddr + "=h", EnvAddr}, {hand, EnvAddr + "=h:0", EnvAddr}, {hand, EnvAddr + "=h:http", EnvAddr},
		{hand, EnvRank + "=3", EnvRank}, {hand, EnvRank + "=-1", EnvRank}, {hand, EnvRank + "=x", EnvRank},
		{hand, EnvSize + "=", EnvSize}, {hand, EnvSize + "=0", EnvSize}, {hand, EnvSize + "=99999999", EnvSize},
		{hand, EnvSecret + "=", EnvSecretFile}, {hand, EnvSecret + "=abcd", EnvSecret}, {hand, EnvSecretFile + "=x", EnvSecretFile},
		{pod, EnvAddr + "=", EnvAddr}, {pod, EnvAddr + "=h", EnvAddr}, {pod, EnvSize + "=x", EnvSize}, {pod, kubernetesIndex + "=3", kubernetesIndex},
		{pod, EnvRun + "=", EnvRun}, {pod, kubernetesIndex + "=x", kubernetesIndex}, {pod, EnvSecret + "=", EnvSecretFile},
		{torch, "RANK=4", "RANK"}, {torch, "RANK=x", "RANK"}, {torch, "WORLD_SIZE=0", "WORLD_SIZE"},
		{torch, "MASTER_PORT=x", "MASTER_ADDR:MASTER_PORT"}, {torch, EnvSecret + "=", EnvSecretFile},
	} {
		_, ok, err := fromEnv(lookupIn(append(c.vars[:len(c.vars):len(c.vars)], c.bad)))
		require.True(t, ok, c.bad)
		var env *EnvError
		require.ErrorAs(t, err, &env, c.bad)
		require.Equal(t, c.name, env.Name, c.bad)
	}
}

// TestPodWithoutARunIsToldBothLabels has the manifest name a label that this Kubernetes does not know.
func TestPodWithoutARunIsToldBothLabels(t *testing.T) {
	_, _, err := fromEnv(lookupIn([]string{kubernetesIndex + "=0", EnvSize + "=3", EnvAddr + "=j-0.s:7", EnvSecret + "=" + hexSecret, EnvRun + "="}))
	require.ErrorContains(t, err, "metadata.labels['batch.kubernetes.io/controller-uid'], or before Kubernetes 1.27 metadata.labels['controller-uid']")
}
