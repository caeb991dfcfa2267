//go:build !ibverbs

package ibv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestProviderWithoutTagHasNoDevices(t *testing.T) {
	require.False(t, Built)
	p := New(Config{})
	require.Equal(t, "ibv", p.Name())
	devices, err := p.Devices(t.Context())
	require.NoError(t, err)
	require.Empty(t, devices)
	_, err = p.Open(t.Context(), "mlx5_0", driver.Options{})
	require.ErrorIs(t, err, driver.ErrNoDevice)
	require.ErrorContains(t, err, "-tags ibverbs")
}
