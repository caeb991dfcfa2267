package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// envSeed hands the seed of a trial to its processes, and tls has them encrypt.
const (
	envSeed = "GOPGAS_CHAOS_SEED"
	tls     = "GRUN_TLS=1"
)

// TestKillsHarmNoSurvivor runs random programs of which some ranks die at random.
func TestKillsHarmNoSurvivor(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector looks at one process")
	}
	for i := range *kills {
		k := drawKill(*firstSeed + uint64(i))
		t.Run(k.String(), func(t *testing.T) {
			k.job.Env = append(k.job.Env, envSeed+"="+strconv.FormatUint(k.seed, 10))
			out := k.job.Try(t, "survive")
			repeat := fmt.Sprintf("repeat it: go test ./chaos -run TestKills %s -kills 1", again(k.seed))
			for _, f := range out.Failures {
				require.True(t, k.victims[f.Rank], "rank %d %s, and was no victim; %s\n%s", f.Rank, f.Reason, repeat, out.Output)
				require.Equal(t, unix.SIGKILL, f.Signal, "%s\n%s", repeat, out.Output)
			}
			require.Equal(t, k.job.Ranks-len(k.victims), strings.Count(out.Output, survived), "%s\n%s", repeat, out.Output)
		})
	}
}

// A kill is a trial of processes, some of which die.
type kill struct {
	trial
	job     testjob.Job
	victims map[int]bool
	early   bool          // they may die while the ranks make their window
	within  time.Duration // they die within so long
}

func drawKill(seed uint64) kill {
	rng := rand.New(rand.NewPCG(seed, 1))
	ways := testjob.Processes(2 + rng.IntN(4))
	k := kill{trial: trial{seed: seed, width: []int{1, 16, 700, 12_000}[rng.IntN(4)]}, job: ways[rng.IntN(len(ways))],
		victims: map[int]bool{}, early: rng.IntN(4) == 0, within: time.Duration(1+rng.IntN(40)) * time.Millisecond}
	if *encrypted {
		k.job = testjob.Job{Ranks: k.job.Ranks, Provider: "tcp"}
	}
	if k.job.Provider == "tcp" && (*encrypted || seed%3 == 0) {
		k.job.Env = append(k.job.Env, tls)
	}
	for range 1 + rng.IntN(k.job.Ranks-1) {
		k.victims[rng.IntN(k.job.Ranks)] = true
	}
	return k
}

func (k kill) String() string {
	return fmt.Sprintf("seed=%d/%v/%d/width=%d/early=%v", k.seed, k.job, k.job.Ranks, k.width, k.early)
}

// survived is the last word of a survivor.
const survived = "survived with all that it should have\n"

// survive is the program of a trial of kills.
func survive(ctx context.Context, r *testjob.Rank) {
	seed, err := strconv.ParseUint(os.Getenv(envSeed), 10, 64)
	r.NoError(err)
	k := drawKill(seed)
	p := newPlayer(r, k.trial)
	p.victims = k.victims
	if k.early {
		p.dieWithin(k.within)
	}
	err = p.gather(ctx)
	if k.early && (err == nil || p.isVictimDeath(err)) { // other survivors may have another result
		p.die()
		fmt.Print(survived)
		return
	}
	r.NoError(err, "%v: rank %d: making team and window", k, r.Me)
	p.tell(ctx)
	p.dieWithin(k.within)
	defer p.pause(k.within)()
	ring := p.startRing(ctx)
	for err == nil {
		p.oneSided(ctx, 10)
		err = p.w.Fence(ctx)
		for target := range p.N {
			p.settle(target)
		}
	}
	p.die()
	r.True(p.isVictimDeath(err), "%v: rank %d: Fence: %v", k, r.Me, err)
	ring(ctx)
	p.goOn(ctx)
	fmt.Print(survived)
}

// gather makes the window of all ranks, and the team of the survivors.
func (p *player) gather(ctx context.Context) (err error) {
	color := 0
	if p.victims[p.Me] {
		color = 1
	}
	if p.team, err = p.World.Split(ctx, color, 0); err != nil {
		return err
	}
	if p.told, err = window.Allocate[int64](ctx, p.World, 1); err != nil {
		return err
	}
	p.w, err = window.Allocate[int64](ctx, p.World, p.elements(), window.WithSlots(p.N))
	return errors.Join(err, p.World.Barrier(ctx))
}

// tell tells all victims that this rank has left gather. It returns at a victim once all ranks have, or another
// victim has died, which had heard of all.
func (p *player) tell(ctx context.Context) {
	for victim := range p.victims {
		if err := window.AtomicAdd(ctx, p.told, victim, 0, 1); err != nil {
			p.True(p.isVictimDeath(err), "tell rank %d: %v", victim, err)
		}
	}
	if p.victims[p.Me] {
		_, _, err := window.WaitUntil(ctx, p.told, window.Elements[int64]{At: []int{0}, Value: int64(p.N)})
		p.True(err == nil || p.isVictimDeath(err), "%v", err)
	}
}

// dieWithin has this rank die within d if it is a victim.
func (p *player) dieWithin(d time.Duration) {
	if p.victims[p.Me] {
		time.AfterFunc(time.Duration(p.own.Int64N(int64(d))), p.Die)
	}
}

// pause has some survivors stop their process within d, for a while. A stopped process
// is not dead. The function returned waits for the end of the pause.
func (p *player) pause(d time.Duration) (wait func()) {
	if p.victims[p.Me] || p.own.IntN(3) > 0 {
		return func() {}
	}
	begin, length := time.Duration(p.own.Int64N(int64(d))), []float64{0.01, 0.1, 0.4}[p.own.IntN(3)]
	script := fmt.Sprintf("sleep %f; kill -STOP %[2]d; sleep %[3]f; kill -CONT %[2]d", begin.Seconds(), os.Getpid(), length)
	cmd := exec.Command("sh", "-c", script)
	p.NoError(cmd.Start())
	return func() { p.NoError(cmd.Wait()) }
}

// die waits for the death of a victim.
func (p *player) die() {
	if p.victims[p.Me] {
		select {}
	}
}

// goOn has the survivors compare their memory with the model, and use their team.
func (p *player) goOn(ctx context.Context) {
	p.NoError(p.team.Barrier(ctx))
	p.verify(ctx)
	p.verifySums(ctx)
	p.pipes(ctx)
	w, err := window.Allocate[int64](ctx, p.team, 1)
	p.NoError(err)
	right := (p.team.Rank() + 1) % p.team.Size()
	p.NoError(w.PutValue(ctx, right, 0, int64(p.team.Rank())))
	p.NoError(w.Fence(ctx))
	p.EqualValues((p.team.Rank()+p.team.Size()-1)%p.team.Size(), w.Local()[0])
	sum := []int64{1}
	p.NoError(collectives.AllReduce(ctx, p.team, collectives.Sum[int64](), sum, sum))
	p.EqualValues(p.team.Size(), sum[0])
	p.NoError(w.Free(ctx))
	if err := p.w.Free(ctx); !errors.Is(err, runtime.ErrTeamBroken) && !p.isVictimDeath(err) {
		p.NoError(err)
	}
}
