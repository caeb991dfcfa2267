package identity

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func config(t *testing.T, secret string, use Use) *tls.Config {
	t.Helper()
	c, err := Config([]byte(secret), use)
	require.NoError(t, err)
	return c
}

// shake runs a handshake and sends a byte in each direction. It returns the errors of
// client and server.
func shake(t *testing.T, client, server *tls.Config) (atClient, atServer error) {
	t.Helper()
	a, b := net.Pipe()
	talk := func(c *tls.Conn) error {
		defer c.NetConn().Close()
		if err := c.Handshake(); err != nil {
			return err
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := c.Write([]byte{1})
			wrote <- err
		}()
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return err
		}
		return <-wrote
	}
	done := make(chan error, 1)
	go func() { done <- talk(tls.Server(b, server)) }()
	atClient = talk(tls.Client(a, client))
	return atClient, <-done
}

func TestProcessesWithTheSameSecretTrustEachOther(t *testing.T) {
	atClient, atServer := shake(t, config(t, "secret", Data), config(t, "secret", Data))
	require.NoError(t, atClient)
	require.NoError(t, atServer)
}

func TestConfigRefusesAnotherKey(t *testing.T) {
	ours := config(t, "secret", Data)
	silent := ours.Clone()
	silent.Certificates = nil
	for name, theirs := range map[string]*tls.Config{
		"another secret": config(t, "other", Data),
		"another use":    config(t, "secret", Rendezvous),
	} {
		trusting := theirs.Clone()
		trusting.VerifyConnection = nil
		t.Run(name, func(t *testing.T) {
			atClient, _ := shake(t, ours, trusting)
			require.ErrorIs(t, atClient, ErrStranger)
			_, atServer := shake(t, trusting, ours)
			require.ErrorIs(t, atServer, ErrStranger)
		})
	}
	t.Run("no certificate", func(t *testing.T) {
		_, atServer := shake(t, silent, ours)
		require.ErrorContains(t, atServer, "certificate")
	})
}

func TestConfigRefusesOlderProtocols(t *testing.T) {
	old := config(t, "secret", Data)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	_, atServer := shake(t, old, config(t, "secret", Data))
	require.Error(t, atServer)
	atClient, _ := shake(t, config(t, "secret", Data), old)
	require.Error(t, atClient)
}

// TestWrongClocksBreakNoJob sets the clocks of both ends a century apart.
func TestWrongClocksBreakNoJob(t *testing.T) {
	past, future := config(t, "secret", Data), config(t, "secret", Data)
	past.Time = func() time.Time { return time.Unix(0, 0).AddDate(-50, 0, 0) }
	future.Time = func() time.Time { return time.Now().AddDate(9000, 0, 0) }
	for _, c := range [][2]*tls.Config{{past, future}, {future, past}} {
		atClient, atServer := shake(t, c[0], c[1])
		require.NoError(t, atClient)
		require.NoError(t, atServer)
	}
}

func TestHandshakeIssuesNoTicket(t *testing.T) {
	client := config(t, "secret", Data)
	cache := &counting{ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	client.ClientSessionCache, client.ServerName, client.SessionTicketsDisabled = cache, "job", false
	atClient, atServer := shake(t, client, config(t, "secret", Data))
	require.NoError(t, atClient)
	require.NoError(t, atServer)
	require.Zero(t, cache.tickets)
	server := config(t, "secret", Data)
	server.SessionTicketsDisabled = false
	atClient, _ = shake(t, client, server)
	require.NoError(t, atClient)
	require.NotZero(t, cache.tickets, "the count must be able to move")
}

// counting counts the tickets that a client keeps.
type counting struct {
	tls.ClientSessionCache
	tickets int
}

func (c *counting) Put(key string, state *tls.ClientSessionState) {
	if state != nil {
		c.tickets++
	}
	c.ClientSessionCache.Put(key, state)
}
