package bootstrap

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestServerCutsAClientWithAWrongSecret(t *testing.T) {
	addr := listen(t, NewServer(2, testSecret, Hooks{Joined: func(int) { t.Error("a stranger joined") }}))
	_, err := Dial(watchdog(t), addr, bytes.Repeat([]byte{8}, SecretSize), 0, Events{})
	require.ErrorIs(t, err, ErrHandshake)
}

func TestServerThatDoesNotKnowTheSecretIsNotTrusted(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() {
		expect(theirs, kindHello, helloSpan, helloSpan)
		send(theirs, kindChallenge, make([]byte, nonceSize))
		expect(theirs, kindProof, proofSize, proofSize)
		send(theirs, kindWelcome, make([]byte, welcomeRest))
	}()
	_, err := NewClient(watchdog(t), ours, testSecret, 0, Events{})
	require.ErrorIs(t, err, ErrHandshake)
}

func TestClientOfAnotherVersionReadsTheServersVersion(t *testing.T) {
	addr := listen(t, NewServer(2, testSecret, Hooks{Joined: func(int) { t.Error("it joined") }}))
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	hello := append(appendHeader(nil, kindHello, helloSpan), make([]byte, helloSpan)...)
	hello[offVersion] = version + 1
	_, err = conn.Write(hello)
	require.NoError(t, err)
	_, err = expect(conn, kindChallenge, nonceSize, nonceSize)
	require.NoError(t, err)
}

func TestClientGivesUpAtAServerOfAnotherVersion(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			response := append(appendHeader(nil, kindChallenge, nonceSize), make([]byte, nonceSize)...)
			response[offVersion] = version + 1
			_, _ = conn.Write(response)
			_, _ = io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	_, err = Dial(watchdog(t), listener.Addr().String(), testSecret, 1, Events{})
	require.ErrorIs(t, err, errVersion)
	require.NotErrorIs(t, err, errNoChallenge)
}

func TestRankNumberJoinsOnce(t *testing.T) {
	addr := listen(t, NewServer(2, testSecret, Hooks{}))
	c, err := Dial(watchdog(t), addr, testSecret, 1, Events{})
	require.NoError(t, err)
	var refused *RefusedError
	_, err = Dial(watchdog(t), addr, testSecret, 1, Events{})
	require.ErrorAs(t, err, &refused)
	_, err = Dial(watchdog(t), addr, testSecret, 2, Events{})
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Reason, "2 ranks")
	require.NoError(t, c.Close(watchdog(t)))
	_, err = Dial(watchdog(t), addr, testSecret, 1, Events{})
	require.ErrorAs(t, err, &refused, "not even after it left")
}

// tap records the client's messages.
type tap struct {
	net.Conn
	said bytes.Buffer
}

func (c *tap) Write(b []byte) (int, error) {
	c.said.Write(b)
	return c.Conn.Write(b)
}

func TestReplayedHandshakeFails(t *testing.T) {
	joined := make(chan int, 2)
	s := NewServer(2, testSecret, Hooks{Joined: func(rank int) { joined <- rank }})
	addr := listen(t, s)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	recorded := &tap{Conn: conn}
	session := newSession(testSecret, Joining{Rank: 0})
	require.NoError(t, session.challenge(recorded))
	w, err := session.join(recorded)
	require.NoError(t, err)
	require.Equal(t, 2, w.size)
	require.Equal(t, 0, <-joined)
	conn.Close()

	again, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer again.Close()
	_, err = again.Write(recorded.said.Bytes())
	require.NoError(t, err)
	again.SetReadDeadline(time.Now().Add(testwatch.Patience()))
	response, _ := io.ReadAll(again)
	require.LessOrEqual(t, len(response), headerSize+nonceSize, "a challenge at most, no welcome")
	require.Empty(t, joined)
}

func TestProofCannotBeReflected(t *testing.T) {
	s := newSession(testSecret, Joining{Rank: 3})
	require.NotEqual(t, s.prove(roleClient, nil), s.prove(roleServer, nil))
}

func TestServerCutsGarbageWithoutAResponse(t *testing.T) {
	s := NewServer(1, testSecret, Hooks{})
	addr := listen(t, s)
	hello := appendHeader(nil, kindHello, helloSpan)
	for name, garbage := range map[string][]byte{
		"http":           []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"zeros":          make([]byte, 100),
		"huge length":    {0xff, 0xff, 0xff, 0xff, 0x47, 0x50, version, 1},
		"wrong kind":     append(appendHeader(nil, kindGoodbye, helloSpan), make([]byte, helloSpan)...),
		"short hello":    append(appendHeader(nil, kindHello, 4), 0, 0, 0, 0),
		"proof too soon": append(appendHeader(nil, kindProof, proofSize), make([]byte, proofSize)...),
	} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_, err = conn.Write(garbage)
		require.NoError(t, err)
		conn.SetReadDeadline(time.Now().Add(testwatch.Patience()))
		said, _ := io.ReadAll(conn) // a reset means that the server did not read the garbage: as good as EOF
		require.Empty(t, said, name)
		conn.Close()
	}
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	conn.Write(append(hello, make([]byte, helloSpan)...))
	_, err = expect(conn, kindChallenge, nonceSize, nonceSize)
	require.NoError(t, err)
	send(conn, kindProof, make([]byte, proofSize))
	conn.SetReadDeadline(time.Now().Add(testwatch.Patience()))
	said, _ := io.ReadAll(conn)
	require.Empty(t, said)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.conns)+len(s.unproven) == 0
	}, testwatch.Patience(), time.Millisecond, "and forgotten")
}

func TestHalfOpenConnectionsDoNotKeepRanksOut(t *testing.T) {
	s := NewServer(1, testSecret, Hooks{})
	addr := listen(t, s)
	for range maxUnproven + 50 {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
	}
	c, err := Dial(watchdog(t), addr, testSecret, 0, Events{})
	require.NoError(t, err)
	require.NoError(t, c.Close(watchdog(t)))
	s.mu.Lock()
	defer s.mu.Unlock()
	require.LessOrEqual(t, len(s.unproven), maxUnproven+s.size)
}

func TestDialEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts into the backlog and never answers
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = Dial(ctx, l.Addr().String(), testSecret, 0, Events{})
	require.Error(t, err)
	require.Error(t, ctx.Err(), "not before")
}

func TestRankWithoutResponseNamesItsTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts into the backlog and never answers
	require.NoError(t, err)
	defer l.Close()
	env := Env{Addr: l.Addr().String(), Size: 1, Secret: testSecret}
	_, _, err = env.Enter(watchdog(t), 50*time.Millisecond)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer within 50ms")
}

func TestDialWaitsForAServerThatIsLate(t *testing.T) {
	addr := testwatch.Address(t, "127.0.0.1").String()
	joined := make(chan error, 1)
	go func() {
		c, err := Dial(watchdog(t), addr, testSecret, 0, Events{})
		if err == nil {
			err = c.Close(context.Background())
		}
		joined <- err
	}()
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	s := newServer(t, 1, Hooks{})
	go s.Serve(context.Background(), l)
	require.NoError(t, receive(t, joined))
}
