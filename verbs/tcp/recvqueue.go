//go:build linux

package tcp

import (
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// recvQueue counts the posted receives that it holds. Their number is the peer's
// credit. The peer starts no SEND without a receive, so no message waits at the target.
type recvQueue struct {
	wq.RecvQueue

	posted     uint64 // receives since the connection was made, and those posted before
	consumed   uint64 // receives that messages have taken
	advertised uint64 // value of posted that the peer knows
}

// Push copies wr to the end of the queue.
func (r *recvQueue) Push(wr *driver.RecvRequest) error {
	err := r.RecvQueue.Push(wr)
	if err == nil {
		r.posted++
	}
	return err
}

// Pop drops the receive that a message has taken.
func (r *recvQueue) Pop() {
	r.RecvQueue.Pop()
	r.consumed++
}

// Flush ends all receives, as if messages had taken them.
func (r *recvQueue) Flush(push func(driver.Completion)) {
	r.consumed += uint64(r.Len())
	r.RecvQueue.Flush(push)
}

// starving reports whether the peer needs an announcement of new receives: it knows of
// less than half of them.
func (r *recvQueue) starving() bool {
	return r.posted > r.advertised && 2*(r.advertised-r.consumed) <= uint64(r.Len())
}

// reconnect starts the counts that both sides of a new connection share.
func (r *recvQueue) reconnect() {
	r.posted, r.consumed, r.advertised = uint64(r.Len()), 0, 0
}
