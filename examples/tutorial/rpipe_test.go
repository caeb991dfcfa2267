package tutorial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/rpipe/gochan"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// A part runs at one rank of an example.
type part func(ctx context.Context, world *runtime.Team) error

// between runs one part at rank 0, the other at rank 1.
func between(first, second part) {
	if err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		return []part{first, second}[job.World().Rank()](ctx, job.World())
	}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func Example_pipe() {
	between(func(ctx context.Context, world *runtime.Team) error {
		w, err := rpipe.OpenWriter[float64](ctx, world, 1)
		if err != nil {
			return err
		}
		b, err := w.Alloc(ctx, 3)
		if err != nil {
			return err
		}
		copy(b.Mem(), []float64{1, 2, 3})
		return errors.Join(w.Write(ctx, b), w.Close(ctx))
	}, func(ctx context.Context, world *runtime.Team) error {
		r, err := rpipe.OpenReader[float64](ctx, world, 0)
		if err != nil {
			return err
		}
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		fmt.Println(b.Mem())
		return errors.Join(r.Free(b), r.Close(ctx))
	})
	// Output: [1 2 3]
}

func Example_pulledBlocks() {
	between(func(ctx context.Context, world *runtime.Team) error {
		w, err := rpipe.OpenWriter[byte](ctx, world, 1, rpipe.WithPull())
		if err != nil {
			return err
		}
		return errors.Join(w.Send(ctx, []byte("fetched")), w.Close(ctx))
	}, func(ctx context.Context, world *runtime.Team) error {
		r, err := rpipe.OpenReader[byte](ctx, world, 0, rpipe.WithPull())
		if err != nil {
			return err
		}
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", b.Mem())
		return errors.Join(r.Free(b), r.Close(ctx))
	})
	// Output: fetched
}

func Example_values() {
	between(func(ctx context.Context, world *runtime.Team) error {
		s, err := gochan.OpenSender[int](ctx, world, 1)
		if err != nil {
			return err
		}
		err = s.Send(ctx, 42)
		return errors.Join(err, s.Close(ctx))
	}, func(ctx context.Context, world *runtime.Team) error {
		c, err := gochan.OpenReceiver[int](ctx, world, 0)
		if err != nil {
			return err
		}
		v, err := c.Recv(ctx)
		fmt.Println(v)
		return errors.Join(err, c.Close(ctx))
	})
	// Output: 42
}

func Example_selectOnArrivals() {
	between(func(ctx context.Context, world *runtime.Team) error {
		w, err := rpipe.OpenWriter[int](ctx, world, 1)
		if err != nil {
			return err
		}
		return errors.Join(w.Send(ctx, []int{7}), w.Close(ctx))
	}, func(ctx context.Context, world *runtime.Team) error {
		r, err := rpipe.OpenReader[int](ctx, world, 0)
		if err != nil {
			return err
		}
		for late := time.After(time.Minute); ; {
			select {
			case <-r.Arrivals():
			case <-late:
				return errors.New("no block arrived")
			}
			b, err := r.TryRead()
			switch {
			case errors.Is(err, rpipe.ErrWouldBlock):
				continue
			case errors.Is(err, io.EOF):
				return r.Close(ctx)
			case err != nil:
				return err
			}
			fmt.Println(b.Mem()[0])
			if err := r.Free(b); err != nil {
				return err
			}
		}
	})
	// Output: 7
}

func Example_manyToOne() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		if world.Rank() > 0 {
			w, err := rpipe.OpenWriter[int](ctx, world, 0)
			if err != nil {
				return err
			}
			return errors.Join(w.Send(ctx, []int{world.Rank()}), w.Close(ctx))
		}
		in, err := fan.OpenIn[int](ctx, world, []int{1, 2, 3})
		if err != nil {
			return err
		}
		sum := 0
		for b, err := range in.All(ctx) {
			if err != nil {
				return err
			}
			sum += b.Mem()[0]
			if err := in.Free(b.Block); err != nil {
				return err
			}
		}
		fmt.Println(sum)
		return in.Close(ctx)
	})
	// Output: 6
}

func Example_oneToMany() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		if world.Rank() == 0 {
			out, err := fan.OpenOut[byte](ctx, world, []int{1, 2, 3})
			if err != nil {
				return err
			}
			err = out.Send(ctx, []byte("hello"))
			return errors.Join(err, out.Close(ctx))
		}
		r, err := rpipe.OpenReader[byte](ctx, world, 0)
		if err != nil {
			return err
		}
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", b.Mem())
		return errors.Join(r.Free(b), r.Close(ctx))
	})
	// Unordered output:
	// hello
	// hello
	// hello
}

func Example_smallRecords() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		c, err := conveyor.Open[int](ctx, world)
		if err != nil {
			return err
		}
		for i := range 4 {
			if err := c.Push(ctx, i, world.Rank()); err != nil {
				return err
			}
		}
		if err := c.Finish(ctx); err != nil {
			return err
		}
		sum := 0
		for record, err := range c.All(ctx) {
			if err != nil {
				return err
			}
			sum += record.Value
		}
		fmt.Println(sum)
		return c.Close(ctx)
	})
	// Output:
	// 6
	// 6
	// 6
	// 6
}

func Example_requestsWithAReply() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		greet := func(_ context.Context, from int, name []byte) ([]byte, error) {
			return fmt.Appendf(nil, "hello %s, rank %d", name, from), nil
		}
		a, err := active.Open(ctx, world, active.Handlers{"greet": greet})
		if err != nil {
			return err
		}
		if world.Rank() == 2 {
			reply, err := a.Call(ctx, 0, "greet", []byte("you"))
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", reply)
		}
		return errors.Join(world.Barrier(ctx), a.Close(ctx))
	})
	// Output: hello you, rank 2
}

func Example_connections() {
	between(func(ctx context.Context, world *runtime.Team) error {
		l, err := netpipe.Listen(ctx, world)
		if err != nil {
			return err
		}
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		_, err = io.WriteString(conn, "hello")
		return errors.Join(err, conn.Close(), world.Barrier(ctx), l.Close())
	}, func(ctx context.Context, world *runtime.Team) error {
		conn, err := netpipe.Dial(ctx, world, 0)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(conn)
		fmt.Printf("%s\n", text)
		return errors.Join(err, conn.Close(), world.Barrier(ctx))
	})
	// Output: hello
}

func Example_memoryElsewhere() {
	between(func(ctx context.Context, world *runtime.Team) error {
		h, err := farheap.Open[int](ctx, world, 1)
		if err != nil {
			return err
		}
		m, err := h.Alloc(ctx, 2)
		if err != nil {
			return err
		}
		err = h.Put(ctx, m, 0, []int{3, 4})
		got := make([]int, 2)
		err = errors.Join(err, h.Get(ctx, m, 0, got))
		fmt.Println(got)
		return errors.Join(err, h.Free(m), h.Close(ctx))
	}, func(ctx context.Context, world *runtime.Team) error {
		s, err := farheap.Serve(ctx, world, 0)
		if err != nil {
			return err
		}
		err = s.Wait(ctx)
		return errors.Join(err, s.Close(ctx))
	})
	// Output: [3 4]
}

func Example_pipesOverAWindow() {
	send := func(ctx context.Context, world *runtime.Team, over *rpipe.WindowPool) error {
		w, err := rpipe.OpenWriter[int](ctx, world, 1, rpipe.WithWindow(over))
		if err != nil {
			return err
		}
		return errors.Join(w.Send(ctx, []int{5}), w.Close(ctx))
	}
	receive := func(ctx context.Context, world *runtime.Team, over *rpipe.WindowPool) error {
		r, err := rpipe.OpenReader[int](ctx, world, 0, rpipe.WithWindow(over))
		if err != nil {
			return err
		}
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		fmt.Println(b.Mem()[0])
		return errors.Join(r.Free(b), r.Close(ctx))
	}
	both := func(ctx context.Context, world *runtime.Team) error {
		over, err := rpipe.OverWindow(ctx, world, 1)
		if err != nil {
			return err
		}
		use := []func(context.Context, *runtime.Team, *rpipe.WindowPool) error{send, receive}[world.Rank()]
		return errors.Join(use(ctx, world, over), over.Close(ctx))
	}
	between(both, both)
	// Output: 5
}
