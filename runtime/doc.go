// Package runtime is gopgas's runtime, not Go's: the job as one rank sees it.
// A program that needs both imports the standard library's as goruntime.
//
// A job is N ranks, processes that `grun -n N ./prog` started or goroutines
// that [RunLocal] did. Each has a [Job]; the job's ranks form the world, a
// [Team], which can be split into smaller ones.
//
//	func main() { runtime.Main(hello) }
//
//	func hello(ctx context.Context, job *runtime.Job) error {
//		world := job.World()
//		...
//		return world.Barrier(ctx)
//	}
//
// Lifecycle: [Main] or [Run] call [Init], the body, and [Job.Close].
//
// # How a process joins
//
// Init takes the first of these that the environment describes. GRUN_VERBOSE=1 makes each
// rank print which.
//
//	GRUN_JOB_ID                        a rank that grun started
//	GRUN_RANK, GRUN_SIZE, GRUN_ADDR    a rank that a user started; rank 0 hosts the rendezvous
//	RANK, WORLD_SIZE, MASTER_ADDR,     the same, started by torchrun or in its style
//	MASTER_PORT
//	none of them                       a world of one rank
//
// Ranks without grun need a secret (GRUN_SECRET_FILE). Their job must start within the
// start timeout ([WithStartTimeout]); else Init returns a [StartError] with the numbers of
// the missing ranks.
//
// # Kinds of calls
//
// A local call concerns this rank only. A one-sided call concerns another rank whose
// program takes no part; any goroutine may make it. All ranks of a team make a
// collective call, in the same order at each rank. The calls of a team run one after
// the other: each runs once all earlier calls have ended. That holds for blocking calls
// and for calls that package collectives starts without waiting. A rank must not make
// two blocking calls of a team at the same time. Ranks with different calls get
// [ErrMismatch] once a message between them shows the difference. If none does, they
// get it after one of them has waited for 100 ms.
//
// # When something goes wrong
//
// Every call that can wait takes a context, and a failure ends it with an error. A nil
// context, here and in packages window, collectives and rpipe, never ends. When a rank
// dies, all other ranks get [ErrRankDead] within a second. When a connection is silent
// for the peer timeout, calls get [ErrUnreachable]; when the launcher is silent,
// [ErrLauncherLost]. Without grun, rank 0 has the launcher's part: its death or silence
// ends the job. A collective call that fails or is canceled at one rank breaks its
// team. Every member then gets [ErrTeamBroken], now or at its next call. Other teams go
// on. [Team.Free] gives back the memory of a team, whole or broken.
package runtime
