//go:build linux

package shm

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// write copies the segments to the peer. One aligned segment of eight bytes
// becomes one atomic store. Either way the data is visible before all later
// accesses: later requests, and the load of the peer's bell.
func (q *QP) write(wr *driver.WorkRequest) error {
	n := wr.Length()
	if n == 0 {
		return nil // as in the InfiniBand specification, the key does not matter
	}
	dst, err := q.remote.peer.resolve(wr.Remote, uint64(n), driver.RemoteWrite)
	if err != nil {
		return err
	}
	if n == 8 && len(wr.Local) == 1 && aligned(dst, 8) {
		atomics.Word64(dst).Store(binary.NativeEndian.Uint64(wr.Local[0].Mem))
	} else {
		wq.Gather(dst, wr.Local, 0)
		atomics.Fence()
	}
	q.wakePeer = q.remote.bell
	return nil
}

// writeImm writes once the peer has a receive for the notice.
func (q *QP) writeImm(wr *driver.WorkRequest, sent *int) (bool, error) {
	n := wr.Length()
	if ok, err := q.credit(); !ok || err != nil {
		return false, err
	}
	if free, err := q.room(); free == 0 || err != nil {
		return false, err
	}
	if ok, err := q.orRequest(wr, sent, q.write(wr)); !ok || err != nil {
		return false, err
	}
	q.messages++
	q.publish(record{kind: recordNotice, last: true, extra: uint64(wr.Imm)<<32 | uint64(n)})
	return true, nil
}

// readRemote copies from the peer into the segments.
func (q *QP) readRemote(wr *driver.WorkRequest) error {
	n := wr.Length()
	if n == 0 {
		return nil
	}
	src, err := q.remote.peer.resolve(wr.Remote, uint64(n), driver.RemoteRead)
	if err != nil {
		return err
	}
	if n <= driver.WholeRead && n%8 == 0 && len(wr.Local) == 1 && aligned(src, 8) {
		atomics.LoadWords(wr.Local[0].Mem, src)
		return nil
	}
	wq.Scatter(wr.Local, 0, src)
	return nil
}

// writeBlocks copies the segment to the peer's blocks, which are visible before all later
// accesses.
func (q *QP) writeBlocks(wr *driver.WorkRequest) error {
	from, to := wr.Extent()
	dst, err := q.remote.peer.resolve(wr.Remote.Add(uint64(from)), uint64(to-from), driver.RemoteWrite)
	if err != nil {
		return err
	}
	blocks.Unpack(dst, from, wr.Runs, wr.Local[0].Mem)
	atomics.Fence()
	q.wakePeer = q.remote.bell
	return nil
}

// readBlocks copies the peer's blocks into the segment.
func (q *QP) readBlocks(wr *driver.WorkRequest) error {
	from, to := wr.Extent()
	src, err := q.remote.peer.resolve(wr.Remote.Add(uint64(from)), uint64(to-from), driver.RemoteRead)
	if err == nil {
		blocks.Pack(wr.Local[0].Mem, src, from, wr.Runs)
	}
	return err
}

// Map returns the mapped memory of the peer, without a copy.
func (q *QP) Map(_ context.Context, remote driver.RemoteAddr, n int, access driver.Access) ([]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, fmt.Errorf("shm: QP %d: %w", q.num, driver.ErrClosed)
	case q.remote == nil:
		return nil, fmt.Errorf("shm: QP %d: %w: mapping before RTR", q.num, driver.ErrState)
	}
	return q.remote.peer.resolve(remote, uint64(n), access&remoteRights)
}

// PeerBell returns the peer's bell, or nil before RTR.
func (q *QP) PeerBell() wait.Ringer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.remote == nil {
		return nil
	}
	return q.remote.bell
}
