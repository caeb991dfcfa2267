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
// Lifecycle: [Main] or [Run] call [Init], the body, and [Job.Close]. Started
// without a launcher, a program is a world of one rank.
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
// [ErrLauncherLost]. A collective call that fails or is canceled at one rank breaks its
// team. Every member then gets [ErrTeamBroken], now or at its next call. Other teams go
// on. [Team.Free] gives back the memory of a team, whole or broken.
package runtime
