package techniques

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// otherSystems makes the contestants that are no parameter servers of this program. Requests over TCP
// are among them on one host only, since their servers listen on its loopback interface.
func (c *Config) otherSystems(ctx context.Context, job *runtime.Job) (all []*contestant, err error) {
	near, err := job.World().SplitHost(ctx)
	if err != nil {
		return nil, err
	}
	if near.Size() == job.World().Size() {
		socket, err := c.overTCP(ctx, job)
		if err != nil {
			return nil, err
		}
		all = append(all, socket)
	}
	pipe, err := c.overPipes(ctx, job)
	if err != nil {
		for _, socket := range all {
			err = errors.Join(err, socket.close(ctx))
		}
		return nil, err
	}
	reduce, err := c.allReduce(job)
	return append(all, pipe, reduce), errors.Join(err, near.Free(ctx))
}

// allReduce returns the sum of all gradients at all ranks: no server, and no weights to pull.
func (c *Config) allReduce(job *runtime.Job) (*contestant, error) {
	b, err := collectives.Alloc[float32](job.World(), c.params())
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, n int) error {
		for range n {
			if err := collectives.AllReduce(ctx, job.World(), collectives.Sum[float32](), b.Mem(), b.Mem()); err != nil {
				return err
			}
		}
		return nil
	}
	return &contestant{name: "collectives.AllReduce", run: run, staged: true, copies: func() uint64 { return 0 },
		close: func(context.Context) error { return b.Free() }}, run(context.Background(), 1)
}

// conns is a parameter server of requests and responses over connections, as over gRPC: a
// request for each key with the gradient, and a response with the weights.
type conns struct {
	c       *Config
	mine    []net.Conn // of this worker, to each server
	work    sync.WaitGroup
	weights []float32
	mu      sync.Mutex
	copied  atomic.Uint64
}

// overTCP listens on the loopback interface: all ranks are on one host.
func (c *Config) overTCP(ctx context.Context, job *runtime.Job) (*contestant, error) {
	team := job.World()
	var l net.Listener
	var address []byte
	var err error
	if team.Rank() < c.Servers {
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return nil, err
		}
		defer l.Close()
		address = []byte(l.Addr().String())
	}
	all, err := team.Exchange(ctx, address)
	if err != nil {
		return nil, err
	}
	return c.connect(ctx, job, "requests over TCP", l, func(s int) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", string(all[s]))
	})
}

// overPipes sends requests over connections of netpipe: the same code as over sockets, with another
// listener and dialer.
func (c *Config) overPipes(ctx context.Context, job *runtime.Job) (*contestant, error) {
	var l net.Listener
	if job.World().Rank() < c.Servers {
		p, err := netpipe.Listen(ctx, job.World(), netpipe.WithName("paramserver"))
		if err != nil {
			return nil, err
		}
		l = p
		defer l.Close()
	}
	return c.connect(ctx, job, "requests over netpipe", l, func(s int) (net.Conn, error) {
		return netpipe.Dial(ctx, job.World(), s, netpipe.WithName("paramserver"))
	})
}

// connect connects all workers with all servers.
func (c *Config) connect(ctx context.Context, job *runtime.Job, name string, l net.Listener, dial func(s int) (net.Conn, error)) (*contestant, error) {
	p := &conns{c: c, weights: make([]float32, c.params())}
	accepted := make(chan error, 1)
	if l != nil {
		stop := context.AfterFunc(ctx, func() { l.Close() }) // it ends Accept
		defer stop()
	}
	go func() { accepted <- p.accept(l, workers(job, c)) }()
	if rank := job.World().Rank(); rank >= c.Servers || job.World().Size() == 1 {
		for s := range c.Servers {
			conn, err := dial(s)
			if err != nil {
				return nil, err
			}
			p.mine = append(p.mine, conn)
		}
	}
	if err := <-accepted; err != nil {
		return nil, err
	}
	k := &contestant{name: name, copies: p.copied.Load, push: 2, pull: 2, staged: true, close: p.close}
	k.run = func(ctx context.Context, n int) error {
		if err := p.run(n); err != nil {
			return err
		}
		return job.World().Barrier(ctx)
	}
	return k, k.run(ctx, 1)
}

// accept serves the connections of n workers, each in a goroutine. A rank without a listener serves none.
func (p *conns) accept(l net.Listener, n int) error {
	for i := 0; l != nil && i < n; i++ {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		p.work.Go(func() { p.serve(conn) })
	}
	return nil
}

// close closes this worker's connections, and waits until the servers have seen their ends.
func (p *conns) close(context.Context) error {
	for _, conn := range p.mine {
		if err := conn.Close(); err != nil {
			return err
		}
	}
	p.work.Wait()
	return nil
}

// run has the worker ask all servers at once, each for one key after the other.
func (p *conns) run(n int) error {
	errs := make([]error, len(p.mine))
	var wait sync.WaitGroup
	for s, conn := range p.mine {
		wait.Go(func() {
			grad, frame := make([]float32, p.c.Piece), make([]byte, header+4*p.c.Piece)
			for range n {
				for key := s; key < p.c.Keys && errs[s] == nil; key += p.c.Servers {
					errs[s] = p.exchange(conn, key, grad, frame)
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// exchange pushes a gradient and pulls weights in its place.
func (p *conns) exchange(conn net.Conn, key int, grad []float32, frame []byte) error {
	p.encode(frame, key, grad)
	if _, err := conn.Write(frame); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, frame); err != nil {
		return err
	}
	if got := p.decode(grad, frame); got != key {
		return fmt.Errorf("a response about key %d, not %d", got, key)
	}
	return nil
}

// serve answers one worker until it closes.
func (p *conns) serve(conn net.Conn) {
	defer conn.Close()
	grad, frame := make([]float32, p.c.Piece), make([]byte, header+4*p.c.Piece)
	for {
		if _, err := io.ReadFull(conn, frame); err != nil {
			return // the worker is done
		}
		key := p.decode(grad, frame)
		if key < 0 || key >= p.c.Keys {
			return
		}
		p.mu.Lock()
		weights := p.weights[key*p.c.Piece:][:p.c.Piece]
		for i, g := range grad {
			weights[i] += g
		}
		p.encode(frame, key, weights)
		p.mu.Unlock()
		if _, err := conn.Write(frame); err != nil {
			return
		}
	}
}
