package runtime_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
)

// RunLocal starts four ranks in one process; under grun, the same body runs in
// processes.
func ExampleRunLocal() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 0 {
			fmt.Println("a world of", job.World().Size())
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// a world of 4
	// <nil>
}

// Without a launcher a program is a world of one rank.
func ExampleRun() {
	err := runtime.Run(context.Background(), func(_ context.Context, job *runtime.Job) error {
		fmt.Printf("rank %d of %d\n", job.World().Rank(), job.World().Size())
		return nil
	})
	fmt.Println(err)
	// Output:
	// rank 0 of 1
	// <nil>
}

// The even ranks and the odd ones become teams of their own, in which they are
// numbered from 0.
func ExampleTeam_Split() {
	err := runtime.RunLocal(context.Background(), 5, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		team, err := world.Split(ctx, world.Rank()%2, world.Rank())
		if err != nil {
			return err
		}
		if world.Rank() == 4 {
			first, err := team.WorldRank(0)
			fmt.Printf("rank 4 is number %d of %d, behind rank %d\n", team.Rank(), team.Size(), first)
			return err
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// rank 4 is number 2 of 3, behind rank 0
	// <nil>
}

// Exchange gives each rank's bytes to all ranks.
func ExampleTeam_Exchange() {
	err := runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		all, err := world.Exchange(ctx, fmt.Appendf(nil, "from %d", world.Rank()))
		if err == nil && world.Rank() == 2 {
			fmt.Printf("%s\n", all)
		}
		return err
	})
	fmt.Println(err)
	// Output:
	// [from 0 from 1 from 2]
	// <nil>
}

// A rank that aborts the job ends the waits of all other ranks.
func ExampleJob_Abort() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		if job.World().Rank() == 1 {
			job.Abort(errors.New("no input"))
			return nil
		}
		err := job.World().Barrier(ctx)
		fmt.Println("aborted:", errors.Is(err, runtime.ErrAborted))
		return err
	})
	fmt.Println("failed:", err != nil)
	// Output:
	// aborted: true
	// failed: true
}
