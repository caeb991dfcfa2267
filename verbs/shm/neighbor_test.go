//go:build linux

package shm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

// showsItself tells the other process where its memory is, and makes no call until its input ends.
func showsItself(t testing.TB, in *bufio.Reader, out io.Writer) {
	r := newRank(t, nil)
	r.word(dataAt).Store(0x5ea)
	require.NoError(t, json.NewEncoder(out).Encode(greeting{r.device.(driver.Neighborhood).Address(), r.at(0)}))
	_, _ = io.Copy(io.Discard, in)
}

// greetingOf starts a process that shows itself, and returns what it shows.
func greetingOf(t *testing.T) (*child, greeting) {
	c := startChild(t, "neighbor")
	line, err := c.in.ReadBytes('\n')
	require.NoError(t, err)
	var g greeting
	require.NoError(t, json.Unmarshal(line, &g))
	return c, g
}

func neighborOf(s *side, address []byte) (driver.Neighbor, error) {
	return s.device.(driver.Neighborhood).Neighbor(context.Background(), address)
}

// mappedNeighbor returns the neighbor that greets, and a word of its memory.
func mappedNeighbor(t *testing.T, g greeting) (driver.Mapper, []byte) {
	n, err := neighborOf(newSide(t, sideConfig{}), g.Address)
	require.NoError(t, err)
	mem, err := n.Map(context.Background(), g.Memory.Add(dataAt), 8, driver.AllAccess)
	require.NoError(t, err)
	return n, mem
}

func TestNeighborMapsMemoryOfAProcessThatMakesNoCall(t *testing.T) {
	c, g := greetingOf(t)
	n, mem := mappedNeighbor(t, g)
	require.Equal(t, word(0x5ea), mem)
	require.NotNil(t, n.PeerBell())
	n.PeerBell().Ring()
	_, err := n.Map(context.Background(), g.Memory.Add(4<<20), 8, driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrAccess)
	c.ended(t)
}

// TestNeighborsTableIsMappedForKeysAlone has the bell lie in the arena, and a second neighbor use the mapping of
// the first one.
func TestNeighborsTableIsMappedForKeysAlone(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{shared: true})
	var first driver.Neighbor
	for range 2 {
		n, err := neighborOf(a, b.device.(driver.Neighborhood).Address())
		require.NoError(t, err)
		require.Len(t, n.BellMemory(), len(b.arena.Bytes()))
		n.BellMemory()[dataAt]++
		if first == nil {
			first = n
		}
	}
	require.EqualValues(t, 2, b.arena.Bytes()[dataAt])
	peers, homes := shm.Mapped(a.device)
	require.Equal(t, []int{0, 1}, []int{peers, homes})
	mem, err := first.Map(context.Background(), b.at(dataAt), 8, driver.AllAccess)
	require.NoError(t, err)
	require.Same(t, &first.BellMemory()[dataAt], &mem[0], "one mapping serves both")
	peers, homes = shm.Mapped(a.device)
	require.Equal(t, []int{1, 1}, []int{peers, homes})
}

// TestNeighborSharesTheMappingOfAQueuePair that was connected before.
func TestNeighborSharesTheMappingOfAQueuePair(t *testing.T) {
	a, b := newPair(t, sideConfig{shared: true})
	mem, err := a.qp.(driver.Mapper).Map(context.Background(), b.at(dataAt), 8, driver.RemoteWrite)
	require.NoError(t, err)
	for range 2 {
		n, err := neighborOf(a, b.device.(driver.Neighborhood).Address())
		require.NoError(t, err)
		require.Same(t, &mem[0], &n.BellMemory()[dataAt])
	}
}

// TestNeighborWithAnotherBellIsLost spoils the place of the bell in an address.
func TestNeighborWithAnotherBellIsLost(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{shared: true})
	const inode, offset = 72, 88
	for at, want := range map[int]error{inode: driver.ErrLost, offset + 7: driver.ErrAccess} {
		address := b.device.(driver.Neighborhood).Address()
		address[at] ^= 8
		_, err := neighborOf(a, address)
		require.ErrorIs(t, err, want, "byte %d", at)
	}
}

func TestNeighborThatHasDiedIsLost(t *testing.T) {
	s := newSide(t, sideConfig{})
	c, g := greetingOf(t)
	require.NoError(t, c.cmd.Process.Kill())
	_, _ = c.cmd.Process.Wait()
	_, err := neighborOf(s, g.Address)
	require.ErrorIs(t, err, driver.ErrLost)
}

// TestNeighborsMemoryStaysMappedAfterItsDeath kills the process of a mapped neighbor. Its queue
// pairs cannot be reached from then on.
func TestNeighborsMemoryStaysMappedAfterItsDeath(t *testing.T) {
	c, g := greetingOf(t)
	_, mem := mappedNeighbor(t, g)
	require.NoError(t, c.cmd.Process.Kill())
	_, _ = c.cmd.Process.Wait()
	require.Equal(t, word(0x5ea), mem)
}

func TestNeighborOfAnotherDeviceOfTheProcessIsLost(t *testing.T) {
	s, other := newSide(t, sideConfig{}), newSide(t, sideConfig{})
	address := other.device.(driver.Neighborhood).Address()
	for i := 24; i < 40; i++ { // the token
		spoiled := append([]byte(nil), address...)
		spoiled[i] ^= 1
		_, err := neighborOf(s, spoiled)
		require.ErrorIs(t, err, driver.ErrLost, "byte %d", i)
	}
	_, err := neighborOf(s, address)
	require.NoError(t, err)
}

func TestQueuePairRefusesTheAddressOfADevice(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{})
	a.modify(driver.StateInit, nil)
	err := a.qp.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: b.device.(driver.Neighborhood).Address()})
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestNeighborsHeapIsNotMapped(t *testing.T) {
	a, b := newSide(t, sideConfig{}), newSide(t, sideConfig{})
	mr, err := b.device.RegMR(context.Background(), memory.Heap(4096), driver.AllAccess)
	require.NoError(t, err)
	n, err := neighborOf(a, b.device.(driver.Neighborhood).Address())
	require.NoError(t, err)
	_, err = n.Map(context.Background(), driver.RemoteAddr{Addr: mr.Addr(), RKey: mr.RKey()}, 8, driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.NoError(t, mr.Close())
	_, err = n.Map(context.Background(), driver.RemoteAddr{Addr: mr.Addr(), RKey: mr.RKey()}, 8, driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrAccess)
}
