package verbs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestOpErrorNamesWhatIsKnown(t *testing.T) {
	full := &OpError{Op: "post send", Provider: "loop", Device: "loop0", QP: 3, Index: 2, Err: driver.ErrQueueFull}
	require.EqualError(t, full, "verbs: post send on loop/loop0 QP 3, request 2: queue full")
	require.ErrorIs(t, full, driver.ErrQueueFull)
	bare := &OpError{Op: "open", Provider: "tcp", Index: -1, Err: errors.New("no route")}
	require.EqualError(t, bare, "verbs: open on tcp: no route")
}

func TestInUseErrorSaysWhatToClose(t *testing.T) {
	err := error(&InUseError{Object: "PD", MRs: 2, QPs: 1})
	require.EqualError(t, err, "PD still in use by 2 MRs and 1 QPs: close those first")
	require.ErrorIs(t, err, ErrInUse)
}
