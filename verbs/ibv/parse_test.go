package ibv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestParseConfigReadsEverySetting(t *testing.T) {
	c, err := ParseConfig("device=mlx5_0, port=2,gid=fe80::1,mtu=1024,retries=3,inline=-1,sl=3,tc=106,")
	require.NoError(t, err)
	require.Equal(t, Config{Device: "mlx5_0", Port: 2, GID: "fe80::1", MTU: 1024, RetryCount: 3, MaxInline: -1,
		ServiceLevel: 3, TrafficClass: 106}, c)
	c, err = ParseConfig("")
	require.NoError(t, err)
	require.Zero(t, c)
}

func TestParseConfigNamesWrongSettings(t *testing.T) {
	for text, want := range map[string]string{
		"speed=11": "choose device, port", "port=x": `"port=x"`, "mtu=1500": "256, 512", "retries=7": "never give up", "tc=256": "tc=256",
		"sl=16": "0 to 15", "port": `"port"`,
	} {
		_, err := ParseConfig(text)
		require.ErrorIs(t, err, driver.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
	}
}
