package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	goruntime "runtime"
	"sync"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/wait"
)

// RunLocal runs n ranks as goroutines of this process and returns their errors joined.
// Their memory lies on the Go heap, so that the race detector sees every access to it,
// remote ones too. WithProvider("tcp") sends everything through sockets instead. A rank
// counts as dead if its body ends the goroutine, as testing.T.FailNow does. Kind:
// collective.
func RunLocal(ctx context.Context, n int, body Body, opts ...Option) error {
	if n < 1 {
		return fmt.Errorf("%d ranks: %w: need at least 1", n, ErrRange)
	}
	host := newLocalHost(n)
	defer host.server.Close() //nolint:errcheck // always nil
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank := range n {
		ranks.Go(func() { host.runRank(ctx, host.place(rank), body, opts, &errs[rank]) })
	}
	ranks.Wait()
	return errors.Join(errs...)
}

// localHost holds the launcher and provider that the ranks of one process share.
type localHost struct {
	size   int
	secret []byte
	server *bootstrap.Server
	wire   *localWire
}

// newLocalHost starts the rendezvous of n ranks that are goroutines of this process.
func newLocalHost(n int) *localHost {
	secret := make([]byte, bootstrap.SecretSize)
	rand.Read(secret)
	return &localHost{n, secret, bootstrap.NewServer(n, secret, bootstrap.Hooks{}), newLocalWire()}
}

// place returns the place of a rank, whose connection to the rendezvous is a net.Pipe.
func (h *localHost) place(rank int) place {
	env := bootstrap.Env{Rank: rank, Size: h.size, LocalRank: rank, LocalSize: h.size, LocalCores: goruntime.NumCPU(), Secret: h.secret}
	return place{env: env, local: h.wire, conn: func(context.Context) (net.Conn, error) {
		mine, theirs := net.Pipe()
		h.server.Attach(theirs)
		return mine, nil
	}}
}

// runRank runs a rank and stores its error in err, even if the body ends this
// goroutine.
func (h *localHost) runRank(ctx context.Context, p place, body Body, opts []Option, err *error) {
	ctx = wait.Context(ctx)
	job, initErr := initAt(ctx, p, opts)
	if initErr != nil {
		h.server.RankDied(p.env.Rank, "it could not join: "+initErr.Error())
		*err = initErr
		return
	}
	*err = job.run(ctx, body, func(e error) { *err = e })
}

// initAlone makes a world of one rank.
func initAlone(ctx context.Context, opts []Option) (*Job, error) {
	host := newLocalHost(1)
	p := host.place(0)
	p.server = host.server
	return initAt(ctx, p, opts)
}
