package ibv

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestZeroConfigIsFilledIn(t *testing.T) {
	cfg, err := Config{}.normalize()
	require.NoError(t, err)
	require.Equal(t, Config{RetryCount: DefaultRetryCount, PeerTimeout: DefaultPeerTimeout, MaxInline: DefaultMaxInline}, cfg)
	set := Config{Port: 2, MTU: 1024, RetryCount: 3, PeerTimeout: time.Second, MaxInline: -1, ServiceLevel: 3, GID: "1"}
	cfg, err = set.normalize()
	require.NoError(t, err)
	require.Equal(t, set, cfg)
}

func TestSenselessConfigIsRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"port":          {Port: -1},
		"port too high": {Port: 256},
		"MTU":           {MTU: 1500},
		"retries":       {RetryCount: 7},
		"no retries":    {RetryCount: -1},
		"timeout":       {PeerTimeout: -1},
		"service level": {ServiceLevel: 16},
	} {
		_, err := cfg.normalize()
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
}

func TestMTUCodes(t *testing.T) {
	for bytes, code := range map[int]uint8{256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5, 0: 0, 1500: 0, 8192: 0} {
		require.Equal(t, code, mtuCode(bytes), "%d bytes", bytes)
	}
}

func TestRetriesLastPeerTimeout(t *testing.T) {
	for _, total := range []time.Duration{time.Nanosecond, time.Millisecond, time.Second, 30 * time.Second, time.Hour} {
		for retries := 1; retries <= 6; retries++ {
			code := timeoutCode(total, retries)
			lasts := time.Duration(retries+1) * (timerUnit << code)
			require.GreaterOrEqual(t, lasts, total)
			if code > minTimeoutCode {
				require.Less(t, lasts/2, total+time.Microsecond, "no longer than needed")
			}
		}
	}
	require.Equal(t, uint8(maxTimeoutCode), timeoutCode(1000*time.Hour, 1), "0 would be for ever")
}

func entry(index int, typ gidType, addr string) gidEntry {
	return gidEntry{index: index, typ: typ, gid: netip.MustParseAddr(addr).As16()}
}

var gidTable = []gidEntry{
	entry(0, gidRoCEv1, "fe80::1"), entry(1, gidRoCEv2, "fe80::1"),
	entry(2, gidRoCEv1, "2001:db8::1"), entry(3, gidRoCEv2, "2001:db8::1"),
	entry(4, gidRoCEv1, "10.0.0.1"), entry(5, gidRoCEv2, "10.0.0.1"),
}

func TestGIDIsRoutableAndOfIPv4WherePossible(t *testing.T) {
	for n, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 3, 5: 3, 6: 5} {
		got, err := chooseGID(gidTable[:n], "")
		require.NoError(t, err)
		require.Equal(t, want, got.index, "of the first %d", n)
	}
	_, err := chooseGID(nil, "")
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestGIDCanBeNamed(t *testing.T) {
	for name, want := range map[string]int{"0": 0, "4": 4, "10.0.0.1": 5, "::ffff:10.0.0.1": 5, "2001:db8::1": 3, "fe80::1": 1} {
		got, err := chooseGID(gidTable, name)
		require.NoError(t, err)
		require.Equal(t, want, got.index, name)
	}
	for _, name := range []string{"6", "-1", "10.0.0.2", "eth0"} {
		_, err := chooseGID(gidTable, name)
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
}

func TestPresentNamesTheKernelsDevices(t *testing.T) {
	dir := t.TempDir()
	require.Empty(t, present(dir))
	require.Empty(t, present(filepath.Join(dir, "missing")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "rxe0"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mlx5_0"), 0o700))
	require.Equal(t, []string{"mlx5_0", "rxe0"}, present(dir))
}
