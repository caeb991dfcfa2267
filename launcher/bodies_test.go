//go:build linux

package launcher

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// bodies are programs that join their job; each returns its exit code.
var bodies = map[string]func() int{
	"report": member(func(c *bootstrap.Client, _ chan string) int {
		if err := c.Report("stats", fmt.Appendf(nil, `{"rank":%d}`, c.Rank())); err != nil {
			return 90
		}
		return leave(c)
	}),
	// Ranks end with one error each, of which that of rank 2 is another.
	"say last": func() int {
		rank := os.Getenv(bootstrap.EnvRank)
		text := "prog: rank " + rank + ": index 9\nclose by rank " + rank
		if rank == "2" {
			text = "prog: rank 2: index 10"
		}
		if !bootstrap.SendFinalError(text) {
			fmt.Fprintln(os.Stderr, text)
		}
		return 1
	},
	"say too much": func() int {
		if bootstrap.SendFinalError(strings.Repeat("x", bootstrap.MaxFinalError)) {
			return 95
		}
		return 0
	},
	"leave":        member(func(c *bootstrap.Client, _ chan string) int { return leave(c) }),
	"forget close": member(func(c *bootstrap.Client, _ chan string) int { return 0 }),
	"never join":   func() int { return 0 },
	// The last rank dies; the survivors print the news of it and exit with 3.
	"one dies": member(func(c *bootstrap.Client, news chan string) int {
		if c.Rank() == c.Size()-1 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		fmt.Println(<-news)
		return 3
	}),
	// Rank 1 fails, and then rank 2, which has heard of it.
	"two fail in turn": member(func(c *bootstrap.Client, news chan string) int {
		switch c.Rank() {
		case 1:
			return 7
		case 2:
			<-news
			return 9
		}
		return leave(c)
	}),
	"one dies, the rest leave": member(func(c *bootstrap.Client, news chan string) int {
		if c.Rank() == c.Size()-1 {
			return 9
		}
		<-news
		time.Sleep(50 * time.Millisecond) // longer than no grace at all
		return leave(c)
	}),
	"abort": member(func(c *bootstrap.Client, news chan string) int {
		if c.Rank() == 1 {
			c.Abort("wrong input")
			time.Sleep(50 * time.Millisecond) // the other ranks may end first
			return 5
		}
		fmt.Println(<-news)
		return 4
	}),
	"wait after all joined": member(func(c *bootstrap.Client, news chan string) int {
		fmt.Println(<-news)
		return 3
	}),
	"wait for news": joiner(func(c *bootstrap.Client, news chan string) int {
		fmt.Println(<-news)
		return 3
	}),
}

// joiner joins and runs f, which hears of deaths and aborts.
func joiner(f func(*bootstrap.Client, chan string) int) func() int {
	return func() int {
		env, ok, err := bootstrap.FromEnv()
		if err != nil || !ok {
			return 91
		}
		news := make(chan string, 100)
		c, err := bootstrap.Dial(context.Background(), env.Addr, env.Secret, env.Rank, bootstrap.Events{
			Dead:  func(rank int, cause string) { news <- fmt.Sprintf("dead %d: %s", rank, cause) },
			Abort: func(rank int, cause string) { news <- fmt.Sprintf("abort %d: %s", rank, cause) },
		})
		if err != nil {
			return 92
		}
		return f(c, news)
	}
}

// member runs f once all ranks have joined.
func member(f func(*bootstrap.Client, chan string) int) func() int {
	return joiner(func(c *bootstrap.Client, news chan string) int {
		all := slices.Collect(func(yield func(int) bool) {
			for r := range c.Size() {
				yield(r)
			}
		})
		if _, err := c.Exchange(context.Background(), "all", all, nil); err != nil {
			fmt.Println(err)
			return 93
		}
		return f(c, news)
	})
}

func leave(c *bootstrap.Client) int {
	if c.Close(context.Background()) != nil {
		return 94
	}
	return 0
}
