//go:build ibverbs

package ibv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// The software device imports no dma-buf: the kernel says so before it looks at the descriptor, so a
// memfd's stands for one. The device still registers the same memory by its pages.
func TestRegMRRefusesADMABufThatTheDeviceDoesNotImport(t *testing.T) {
	e := newEnd(t, Config{})
	if !strings.HasPrefix(e.dev.Info().Name, "rxe") {
		t.Skip("this device may import dma-bufs")
	}
	fd, err := memory.NewMemfd("dmabuf", 4096)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fd.Close()) })
	require.NoError(t, fd.Commit(0, 4096))
	mem := fd.Memory(0, 4096)
	mem.Kind = driver.KindDMABuf
	_, err = e.dev.RegMR(t.Context(), mem, driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrKind)
	require.ErrorIs(t, err, unix.EOPNOTSUPP)
	require.ErrorContains(t, err, "provider ibv")
	require.ErrorContains(t, err, "dma-buf")
	mem.Kind = driver.KindMemfd
	mr, err := e.dev.RegMR(t.Context(), mem, driver.AllAccess)
	require.NoError(t, err)
	require.NoError(t, mr.Close())
}
