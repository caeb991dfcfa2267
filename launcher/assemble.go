//go:build linux

package launcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// fanOut is the number of hosts that this process reaches itself, and that each agent
// reaches for it.
const fanOut = 16

// errJobEnds: the job ends before its hosts are ready.
var errJobEnds = errors.New("the job ends")

// assemble makes the agents of all hosts ready. No rank starts before. The error names the
// hosts that failed.
func (j *job) assemble(ctx context.Context) error {
	limit := orDefault(j.spec.StartTimeout, defaultStartTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &silentHost{limit})
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var all sync.WaitGroup
	errs := make([]error, len(j.hosts))
	for i, h := range j.hosts {
		all.Go(func() {
			var err error
			if h.here {
				h.agent, err = j.newLocalAgent(h)
			} else {
				h.agent, err = h.remote, h.remote.prepare(ctx)
			}
			if errs[i] = err; err != nil {
				fail(errJobEnds)
			}
		})
	}
	all.Wait()
	return joinErrors(errs)
}

// joinErrors joins the errors but those that followed from another one.
func joinErrors(errs []error) error {
	var causes []error
	for _, err := range errs {
		if err != nil && !errors.Is(err, errJobEnds) {
			causes = append(causes, err)
		}
	}
	if len(causes) == 0 {
		return errors.Join(errs...)
	}
	return errors.Join(causes...)
}

// A silentHost is the cause of the end of a context: a host was not ready in time.
type silentHost struct{ limit time.Duration }

func (e *silentHost) Error() string {
	return fmt.Sprintf("it was not ready within %v: check that it answers, or raise --start-timeout", e.limit)
}

// makeRemotes makes the ends of the agents of other hosts. Those behind the first fanOut are
// reached through an earlier one.
func (j *job) makeRemotes() {
	var order []*remoteAgent
	for _, h := range j.hosts {
		if h.here {
			continue
		}
		h.remote = newRemoteAgent(j, h)
		if n := len(order); n >= fanOut {
			h.remote.parent = order[(n-fanOut)/fanOut]
			h.remote.parent.children = append(h.remote.parent.children, h.remote)
		}
		order = append(order, h.remote)
	}
}
