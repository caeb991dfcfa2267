//go:build linux

package memory

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestCardsAreFoundByAllProcesses has more numbers than places, so that some share one.
func TestCardsAreFoundByAllProcesses(t *testing.T) {
	const n = 8
	_, all := openReservations(t, n)
	defer closeAll(t, all)
	var publishing sync.WaitGroup
	for i, r := range all {
		publishing.Go(func() {
			if err := r.Publish(5*i, []byte(fmt.Sprint("card ", i))); err != nil {
				t.Error(err)
			}
		})
	}
	publishing.Wait()
	for _, r := range all {
		for i := range all {
			require.Equal(t, fmt.Sprint("card ", i), string(r.Card(5*i)))
		}
		require.Nil(t, r.Card(1))
		require.Nil(t, r.Card(-1))
	}
	require.ErrorIs(t, all[0].Publish(99, []byte("late")), errNoPlace)
	require.Nil(t, all[0].Card(99))
}

func TestCardThatDoesNotFitIsRefused(t *testing.T) {
	_, all := openReservations(t, 1)
	defer closeAll(t, all)
	require.ErrorIs(t, all[0].Publish(0, make([]byte, MaxCard+1)), driver.ErrInvalid)
	require.Nil(t, all[0].Card(0))
	full := make([]byte, MaxCard)
	full[MaxCard-1] = 7
	require.NoError(t, all[0].Publish(0, full))
	require.Equal(t, full, all[0].Card(0))
}

// TestCardOfAWrongLengthIsNone overwrites the length, as a process that died early or went wild may.
func TestCardOfAWrongLengthIsNone(t *testing.T) {
	_, all := openReservations(t, 2)
	defer closeAll(t, all)
	require.NoError(t, all[0].Publish(0, []byte("card")))
	for _, length := range []int64{0, MaxCard + 1, -1} {
		wordAt(all[0].card(0)[8:]).Store(length)
		require.Nil(t, all[1].Card(0))
	}
}

func TestReservationsWithoutPlacesHaveNoCards(t *testing.T) {
	m, err := NewReservations(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	r, err := OpenReservations(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.FD()), 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	require.ErrorIs(t, r.Publish(0, []byte("card")), errNoPlace)
	require.Nil(t, r.Card(0))
	var none *Reservations
	require.Error(t, none.Publish(0, []byte("card")))
	require.Nil(t, none.Card(0))
}
