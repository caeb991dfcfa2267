//go:build linux

package shm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestClosedCQReturnsErrClosedAndWakesWaiters(t *testing.T) {
	for name, end := range map[string]func(s *side) error{
		"queue":  func(s *side) error { return s.cq.Close() },
		"device": func(s *side) error { return s.device.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, sideConfig{})
			waited := make(chan error, 1)
			go func() {
				for {
					err := s.cq.Wait(context.Background())
					if err == nil {
						_, err = s.cq.Poll(make([]driver.Completion, 1))
					}
					if err != nil {
						waited <- err
						return
					}
				}
			}()
			require.NoError(t, end(s))
			require.ErrorIs(t, <-waited, driver.ErrClosed)
			_, err := s.cq.Poll(make([]driver.Completion, 1))
			require.ErrorIs(t, err, driver.ErrClosed)
		})
	}
}
