package verbs

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Map returns n bytes of the peer's memory at remote for loads and stores. It
// checks key, bounds and rights once. The slice is valid as long as the process
// lives; after the peer has deregistered, it reads garbage.
//
// Errors: driver.ErrUnsupported where the peer's memory cannot be reached,
// driver.ErrAccess where a check fails.
func (q *QP) Map(ctx context.Context, remote RemoteAddr, n int, access Access) ([]byte, error) {
	mapper, _ := q.drv.(driver.Mapper)
	return q.pd.ctx.mapBy(ctx, mapper, q.num, remote, n, access)
}

// mapBy is Map by a mapper, nil if there is none. qp is the number of its queue pair, or 0.
func (c *Context) mapBy(ctx context.Context, mapper driver.Mapper, qp uint32, remote RemoteAddr, n int, access Access) ([]byte, error) {
	const op = "map"
	switch {
	case mapper == nil:
		return nil, c.fail(op, qp, driver.ErrUnsupported)
	case n < 0:
		return nil, c.fail(op, qp, invalid("%d bytes", n))
	}
	mem, err := mapper.Map(ctx, remote, n, access)
	return mem, c.fail(op, qp, err)
}

// PeerBell returns the peer's bell, and whether there is one. Ring it after a
// mapped store for which the peer may be waiting.
func (q *QP) PeerBell() (wait.Ringer, bool) {
	if mapper, ok := q.drv.(driver.Mapper); ok {
		if bell := mapper.PeerBell(); bell != nil {
			return bell, true
		}
	}
	return nil, false
}

// Cancel ends the request id. When it returns true, the provider no longer
// reads or writes the request's memory. A completion is or will be queued. It
// returns false where the provider cannot cancel: move the QP to ERR and drain
// it.
func (q *QP) Cancel(id uint64) bool {
	canceler, ok := q.drv.(driver.Canceler)
	if ok {
		canceler.Cancel(id)
	}
	return ok
}
