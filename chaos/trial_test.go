package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// A trial holds the choices that all ranks share.
type trial struct {
	seed   uint64
	config testjob.Config
	width  int  // elements of a cell
	linger bool // the ranks outwait a peer timeout
	faults faulty.Plan
}

// peerTimeout bounds the silence of a tcp connection in trials that linger.
const peerTimeout = 2 * time.Second

// drawTrial returns the trial of a seed.
func drawTrial(seed uint64) trial {
	rng := rand.New(rand.NewPCG(seed, 0))
	ways := testjob.Transports(2 + rng.IntN(4))
	t := trial{seed: seed, config: ways[rng.IntN(len(ways))], width: []int{1, 16, 700, 12_000}[rng.IntN(4)]}
	if *encrypted {
		t.config = testjob.Config{Provider: "tcp", Ranks: t.config.Ranks}
	}
	t.config.TLS = t.config.Provider == "tcp" && (*encrypted || seed%3 == 0)
	t.linger = t.config.Provider == "tcp" && rng.IntN(3) == 0
	if c := &t.config; !c.Mapped() {
		c.Shallow, c.Refusing = rng.IntN(4) == 0, rng.IntN(4) == 0
		if !c.NIC && !c.Shallow && !c.Refusing {
			t.faults = drawFaults(rng)
		}
	}
	return t
}

// drawFaults returns faults of a provider that do not break its promises.
func drawFaults(rng *rand.Rand) faulty.Plan {
	chance := func() float64 { return rng.Float64() * rng.Float64() / 2 }
	return faulty.Plan{Seed: rng.Uint64(), HideMapper: true, DelayStarts: chance(), DelayCompletions: chance(), Reorder: chance(),
		PartialPosts: chance(), QueueFull: chance()}
}

// options returns the options of the trial's job.
func (t trial) options() (opts []runtime.Option) {
	if t.linger {
		opts = append(opts, runtime.WithPeerTimeout(peerTimeout))
	}
	if t.faults.Seed != 0 {
		opts = append(opts, runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, t.faults) }))
	}
	return opts
}

// rng returns a source of choices: rank's own, or for rank -1 one that is equal at
// all ranks.
func (t trial) rng(rank int) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed, uint64(rank+2)))
}

func (t trial) String() string {
	return fmt.Sprintf("seed=%d/%v/width=%d/linger=%v/faults=%v", t.seed, t.config, t.width, t.linger, t.faults.Seed != 0)
}
