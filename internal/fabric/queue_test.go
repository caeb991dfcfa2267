package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// recordedRig returns two ranks without mapping whose posts rec records.
func recordedRig(t *testing.T, rec *recorder) (*rig, *fabric.Remote) {
	r := newRigOver(t, 2, 0, func() driver.Provider { return rec })
	r.region(t, 1, 4096, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	return r, remote
}

// A flush posts a READ unless all posts of its connection are known to be applied. So its posts
// tell what it waits for.
func TestFlushOfAQueueConcernsItsPostsOnly(t *testing.T) {
	rec := &recorder{Provider: loop.New()}
	r, main := recordedRig(t, rec)
	q, err := r.ranks[0].NewQueue()
	require.NoError(t, err)
	require.Equal(t, 1, q.Number())
	through, err := q.Remote(watched(t), main)
	require.NoError(t, err)
	again, err := q.Remote(watched(t), main)
	require.NoError(t, err)
	require.Same(t, through.Peer, again.Peer)
	require.NotSame(t, main.Peer, through.Peer)
	require.Equal(t, 2, r.ranks[1].Inbound())

	require.NoError(t, main.Write(watched(t), 0, []byte("mains")))
	rec.take()
	require.NoError(t, through.Peer.Flush(watched(t)))
	require.Empty(t, rec.take(), "no post of the queue is under way")
	require.NoError(t, through.Write(watched(t), 8, []byte("queue")))
	rec.take()
	require.NoError(t, through.Peer.Flush(watched(t)))
	require.Equal(t, "8s", rec.take())
	require.NoError(t, main.Peer.Flush(watched(t)))
	require.Equal(t, "8s", rec.take())

	through.Peer.Order()
	require.NoError(t, main.Write(watched(t), 0, []byte("mains")))
	require.NotContains(t, rec.take(), "f", "an Order of the queue holds up no post of others")
	require.NoError(t, through.Write(watched(t), 8, []byte("queue")))
	require.Contains(t, rec.take(), "f")
	require.NoError(t, main.Peer.Flush(watched(t)))
	require.NoError(t, through.Peer.Flush(watched(t)))

	require.NoError(t, q.Close(watched(t)))
	require.Equal(t, 1, r.ranks[1].Inbound())
	require.ErrorIs(t, q.Close(watched(t)), fabric.ErrClosed)
	_, err = q.Remote(watched(t), main)
	require.ErrorIs(t, err, fabric.ErrClosed)
	next, err := r.ranks[0].NewQueue()
	require.NoError(t, err)
	require.Equal(t, 1, next.Number(), "the number is free again")
	_, err = next.Remote(watched(t), main)
	require.NoError(t, err)
	require.NoError(t, main.Write(watched(t), 0, []byte("mains")))
	require.NoError(t, main.Peer.Flush(watched(t)))
}

// A queue over memory that this process maps makes no connection.
func TestQueueToMappedMemoryHasNoConnection(t *testing.T) {
	r := newRigOver(t, 2, -1, func() driver.Provider { return loop.New() })
	r.region(t, 0, 64, "x")
	self, err := r.ranks[0].Resolve(watched(t), 0, "x")
	require.NoError(t, err)
	q, err := r.ranks[0].NewQueue()
	require.NoError(t, err)
	through, err := q.Remote(watched(t), self)
	require.NoError(t, err)
	require.Same(t, self, through)
	require.NoError(t, q.Close(watched(t)))
}
