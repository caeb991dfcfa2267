package netpipe_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// bodiesOfConns run as three processes. The test kills the last one with connections
// under way; the first two continue with theirs.
func bodiesOfConns() map[string]testjob.Body {
	return map[string]testjob.Body{"connections": connsOfTheDead}
}

func connsOfTheDead(ctx context.Context, r *testjob.Rank) {
	l, err := netpipe.Listen(ctx, r.World)
	r.NoError(err)
	var served atomic.Int32
	if r.Me == 0 {
		go serveAll(l, &served)
	}
	toServer, err := netpipe.Dial(ctx, r.World, 0)
	r.NoError(err)
	leave(ctx, r) // all ranks listen and are served
	if r.Me == 2 {
		go func() { _, _ = toServer.Write(make([]byte, 10<<20)) }()
		time.Sleep(5 * time.Millisecond) // in the middle of it, as a rule
		r.Die()
	}
	ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
	defer cancel()
	_, err = netpipe.Dial(ctx, r.World, 2) // does not accept
	r.ErrorIs(err, runtime.ErrRankDead)
	toDead, err := netpipe.OpenConn(ctx, r.World, 2)
	if err == nil {
		_, err = toDead.Read(make([]byte, 1))
	}
	r.ErrorIs(err, runtime.ErrRankDead)
	r.EqualValues(r.Me, request(r, toServer, uint64(r.Me)))
	const dials = 5
	for i := range uint64(dials) {
		c, err := netpipe.Dial(ctx, r.World, 0)
		r.NoError(err)
		r.Equal(i, request(r, c, i))
	}
	fmt.Println("lives", r.Me)
	for r.Me == 0 && served.Load() < 3+2*dials { // the other rank's last one among them
		r.NoError(ctx.Err())
		time.Sleep(time.Millisecond)
	}
	r.NoError(l.Close())
}

// serveAll sends back the bytes of any connection, each of which ends some time,
// with an error where its rank dies.
func serveAll(l net.Listener, served *atomic.Int32) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(c, c)
			c.Close()
			served.Add(1)
		}()
	}
}

func TestConnectionsOutliveDeadProcess(t *testing.T) {
	for _, j := range testjob.Processes(3) {
		t.Run(j.String(), func(t *testing.T) {
			out := j.Try(t, "connections")
			require.NotZero(t, out.ExitCode)
			for _, rank := range []string{"lives 0", "lives 1"} {
				require.Contains(t, out.Output, rank, out.Summary())
			}
		})
	}
}
