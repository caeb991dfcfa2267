package bootstrap

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueueGivesEverythingInOrder(t *testing.T) {
	q := newQueue[int]()
	for i := range 3 {
		require.True(t, q.put(i, 1))
	}
	require.Equal(t, []int{0, 1, 2}, q.take())
	q.put(3, 1)
	q.close()
	require.False(t, q.put(4, 1))
	require.Equal(t, []int{3}, q.take(), "what was there before it was closed")
	require.Nil(t, q.take())
}

func TestFullQueueRefusesOrWaits(t *testing.T) {
	q := newQueue[int]()
	require.NoError(t, q.tryPut(0, queueLimit+1), "one item of any size")
	require.ErrorIs(t, q.tryPut(1, 1), ErrOverflow)
	require.True(t, q.put(2, 1), "what must not be lost is taken")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, q.waitPut(ctx, 3, 1), context.Canceled)
	waited := make(chan error, 1)
	go func() { waited <- q.waitPut(watchdog(t), 4, 1) }()
	require.Equal(t, []int{0, 2}, q.take())
	require.NoError(t, receive(t, waited))
	require.Equal(t, []int{4}, q.take())
}

func TestClosingAQueueEndsItsWaits(t *testing.T) {
	q := newQueue[int]()
	q.put(0, queueLimit+1)
	waited := make(chan error, 1)
	go func() { waited <- q.waitPut(watchdog(t), 1, 1) }()
	q.discard()
	require.ErrorIs(t, receive(t, waited), ErrClosed)
	require.ErrorIs(t, q.tryPut(1, 1), ErrClosed)
	require.Nil(t, q.take())
}

func TestEachEndsWithTheQueue(t *testing.T) {
	q := newQueue[int]()
	ended := make(chan int, 1)
	go func() {
		sum := 0
		q.each(func(i int) { sum += i })
		ended <- sum
	}()
	for i := range 100 {
		q.put(i, 1)
	}
	q.close()
	require.Equal(t, 4950, receive(t, ended))
}
