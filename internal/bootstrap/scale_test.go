package bootstrap

import (
	"context"
	"fmt"
	"math/bits"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// A meter counts the bytes of a rank's connection, and the rounds: how often the rank
// read after it wrote. That bounds the messages that waited for each other.
type meter struct {
	net.Conn
	bytes, rounds atomic.Int64
	wrote         atomic.Bool
	steps         *atomic.Uint64 // reads and writes of all ranks
}

func (m *meter) Write(b []byte) (int, error) {
	m.wrote.Store(true)
	m.steps.Add(1)
	m.bytes.Add(int64(len(b)))
	return m.Conn.Write(b)
}

func (m *meter) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.bytes.Add(int64(n))
	if n > 0 && m.wrote.Swap(false) {
		m.rounds.Add(1)
	}
	return n, err
}

// A simulated rank makes the calls of a rank of examples/hello: it joins, exchanges its team's
// card, and connects to its neighbors in the tree of the barrier. It exchanges a window's card,
// connects to its right neighbor, and meets all others before it leaves.
type simulated struct {
	rank, size int
	meter      *meter
	client     *Client
}

const (
	simulatedArity    = 8   // as in the tree of runtime's barrier
	simulatedHostSize = 128 // ranks of a host
)

func (s *simulated) run(ctx context.Context, members []int) error {
	card := fmt.Sprintf(`{"Host":"%036d pid:[4026531836] node%d","Cores":64,"Mapped":false,"Atomics":"cpu"}`, 0, s.rank/simulatedHostSize)
	if err := s.exchange(ctx, "team/world", members, card); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.exchange(ctx, "world/1", members, `{"Type":"int","Size":8,"Elems":1,"Slots":0}`); err != nil {
		return err
	}
	if err := s.call(ctx, (s.rank+1)%s.size); err != nil {
		return err
	}
	return s.exchange(ctx, "close", members, "")
}

func (s *simulated) exchange(ctx context.Context, key string, members []int, mine string) error {
	all, err := s.client.Exchange(ctx, key, members, []byte(mine))
	if err == nil && len(all) != s.size {
		err = fmt.Errorf("%d parts of %d", len(all), s.size)
	}
	return err
}

// connect calls the ranks above and below at once.
func (s *simulated) connect(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	if s.rank > 0 {
		group.Go(func() error { return s.call(ctx, (s.rank-1)/simulatedArity) })
	}
	for below := s.rank*simulatedArity + 1; below <= (s.rank+1)*simulatedArity && below < s.size; below++ {
		group.Go(func() error { return s.call(ctx, below) })
	}
	return group.Wait()
}

// call makes a call as long as those by which runtime connects over tcp.
func (s *simulated) call(ctx context.Context, rank int) error {
	_, err := s.client.Call(ctx, rank, "connect", make([]byte, 150))
	return err
}

func TestStartOfManyRanksTakesFewRoundsCallsAndBytes(t *testing.T) {
	size := 4096
	if testwatch.Race {
		size = 256 // the detector takes 8,128 goroutines at most
	}
	var steps atomic.Uint64
	ctx, cancel := testwatch.With(context.Background(), steps.Load)
	defer cancel()
	server := newServer(t, size, Hooks{})
	var calls atomic.Int64
	list, members := make([]*simulated, size), ranks(size)
	before := processorTime(t)
	joining, errs := new(errgroup.Group), make(chan error, size)
	joining.SetLimit(2) // a handshake has a bound, on a busy machine too
	for rank := range list {
		joining.Go(func() (err error) {
			s := &simulated{rank: rank, size: size, meter: &meter{Conn: overPipe(t, server), steps: &steps}}
			s.client, err = NewClient(ctx, s.meter, testSecret, s.rank, Events{Silence: time.Hour,
				Call: func(context.Context, int, string, []byte) ([]byte, error) {
					calls.Add(1)
					return make([]byte, 250), nil
				},
			})
			list[rank] = s
			return err
		})
	}
	require.NoError(t, joining.Wait())
	for _, s := range list {
		go func() { errs <- s.run(ctx, members) }()
	}
	for range list {
		require.NoError(t, <-errs)
	}
	var most, sum, rounds int64
	for _, s := range list {
		most, rounds = max(most, s.meter.bytes.Load()), max(rounds, s.meter.rounds.Load())
		sum += s.meter.bytes.Load()
	}
	leaving := new(errgroup.Group)
	leaving.SetLimit(2)      // a goodbye has a bound, too
	for _, s := range list { // the last to leave get news of the first
		leaving.Go(func() error { return s.client.Close(ctx) })
	}
	require.NoError(t, leaving.Wait())
	t.Logf("%d ranks: %d calls, %d bytes a rank and %d at most, %d rounds at most, %v of processor time",
		size, calls.Load(), sum/int64(size), most, rounds, processorTime(t)-before)
	hosts := size / simulatedHostSize
	require.EqualValues(t, 2*(size-1)+size, calls.Load(), "one for each edge of the tree and direction, and one to the right neighbor")
	require.LessOrEqual(t, rounds, int64(4*bits.Len(uint(size))))
	require.LessOrEqual(t, sum/int64(size), int64(8<<10+128*hosts))
	require.LessOrEqual(t, most, int64(16<<10+128*hosts), "the first rank of a tree has 9 neighbors")
}

// processorTime returns the time that all threads of this process used.
func processorTime(t *testing.T) time.Duration {
	var u unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
