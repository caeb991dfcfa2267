//go:build linux

package wire

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/silence"
	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestMain(m *testing.M) {
	testwatch.HeedSignals()
	testwatch.Main(m)
}

func TestReadReturnsTheMessageThatWasWritten(t *testing.T) {
	for _, m := range []Message{
		{Kind: KindGo},
		{Kind: KindExited, Rank: 3, Status: 9},
		{Kind: KindControl, Bound: time.Minute},
		{Kind: KindRefused, Fault: &Fault{Program: "p", Code: 127, Text: "none"}},
		{Kind: KindPlan, Plan: &Plan{Env: Strings{"A=\xff\n"}, Programs: []Program{{Args: Strings{"", "\xfe'", "é"}, Env: Strings{"B=\x80"}}}}},
		{Kind: KindPlan, Plan: &Plan{JobID: "j", Secret: []byte{1, 2}, Size: 2, Programs: []Program{{Name: "p"}}, Ranks: []Rank{{Rank: 1}}}},
	} {
		var b bytes.Buffer
		require.NoError(t, Write(&b, m))
		b.WriteString("rest")
		got, err := Read(&b)
		require.NoError(t, err)
		require.Equal(t, m, got)
		require.Equal(t, "rest", b.String(), "Read takes no byte of what follows")
	}
}

func TestReadRefusesWhatIsNoMessage(t *testing.T) {
	var good bytes.Buffer
	require.NoError(t, Write(&good, Message{Kind: KindExited, Rank: 3}))
	for name, change := range map[string]func(b []byte) []byte{
		"magic":   func(b []byte) []byte { b[offMagic]++; return b },
		"version": func(b []byte) []byte { b[offVersion]++; return b },
		"kind":    func(b []byte) []byte { b[offKind] = byte(kindEnd); return b },
		"length":  func(b []byte) []byte { b[offLength+3] = 0xff; return b },
		"body":    func(b []byte) []byte { b[headerSize] = 'x'; return b },
	} {
		_, err := Read(bytes.NewReader(change(bytes.Clone(good.Bytes()))))
		require.ErrorIs(t, err, ErrWire, name)
	}
	_, err := Read(bytes.NewReader(good.Bytes()[:good.Len()-1]))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestWriteRefusesAMessageThatIsTooLong(t *testing.T) {
	require.ErrorIs(t, Write(io.Discard, Message{Kind: KindFinalError, Text: strings.Repeat("x", MaxMessage)}), ErrWire)
}

func TestCheckRefusesNumbersWithoutAnObject(t *testing.T) {
	for _, r := range []Rank{{Rank: -1}, {Rank: 2}, {Program: 1}, {Program: -1}} {
		require.ErrorIs(t, (&Plan{Size: 2, Programs: make([]Program, 1), Ranks: []Rank{r}}).Check(), ErrWire)
	}
}

// pair returns both ends of a session with its control stream.
func pair(t *testing.T) (grun, agent *Session) {
	near, far := net.Pipe()
	grun, err := NewSession(near, true)
	require.NoError(t, err)
	agent, err = NewSession(far, false)
	require.NoError(t, err)
	t.Cleanup(func() { grun.Close(); agent.Close() })
	control, err := grun.Open(Message{Kind: KindControl})
	require.NoError(t, err)
	grun.Control(control)
	control, err = agent.Accept()
	require.NoError(t, err)
	_, err = Read(control)
	require.NoError(t, err)
	agent.Control(control)
	return grun, agent
}

func TestSessionCarriesMessagesAndStreams(t *testing.T) {
	ctx, cancel := testwatch.With(t.Context())
	defer cancel()
	grun, agent := pair(t)
	heard := make(chan Message, 1)
	go agent.Listen(func(m Message) { heard <- m })
	require.NoError(t, grun.Send(Message{Kind: KindSignal, Signal: 15}))
	select {
	case m := <-heard:
		require.Equal(t, Message{Kind: KindSignal, Signal: 15}, m)
	case <-ctx.Done():
		t.Fatal("no message")
	}
	out, err := grun.Open(Message{Kind: KindStdout, Rank: 7})
	require.NoError(t, err)
	in, err := agent.Accept()
	require.NoError(t, err)
	m, err := Read(in)
	require.NoError(t, err)
	require.Equal(t, Message{Kind: KindStdout, Rank: 7}, m)
	_, err = in.Write([]byte("text"))
	require.NoError(t, err)
	require.NoError(t, in.CloseWrite())
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "text", string(text))
}

func TestCloseOfAStreamEndsItsRead(t *testing.T) {
	grun, _ := pair(t)
	stream, err := grun.Open(Message{Kind: KindStdin})
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := stream.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, stream.Close())
	require.Error(t, <-ended)
}

func TestListenerGivesTheStreamsOfTheOtherEndAndLeavesTheSessionOpen(t *testing.T) {
	grun, agent := pair(t)
	l := grun.Listener(nil)
	_, err := agent.Open(Message{Kind: KindRendezvous})
	require.NoError(t, err)
	conn, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	require.NoError(t, grun.Send(Message{Kind: KindGo}))
}

func TestBytesThatAreNoFrameEndASession(t *testing.T) {
	ours, theirs := net.Pipe()
	grun, err := NewSession(ours, true)
	require.NoError(t, err)
	t.Cleanup(grun.Close)
	go io.Copy(io.Discard, theirs) //nolint:errcheck // ends with the session
	control, err := grun.Open(Message{Kind: KindControl})
	require.NoError(t, err)
	grun.Control(control)
	go theirs.Write([]byte("You have new mail in /var/mail/me.\n")) //nolint:errcheck // as above
	require.ErrorIs(t, grun.Listen(func(Message) {}), ErrWire)
}

func TestSilenceEndsASession(t *testing.T) {
	grun, _ := pair(t) // the other end does not listen, and so does not answer
	ended := make(chan error)
	go func() { ended <- grun.Listen(func(Message) {}) }()
	go grun.Watch(time.Hour)
	require.Eventually(t, func() bool { return grun.silence.Bound() > 0 }, testwatch.Patience(), time.Millisecond)
	for range silence.Looks + 1 { // the start counts as an answer
		grun.silence.Look()
	}
	require.ErrorIs(t, <-ended, ErrSilent)
}

func FuzzMessage(f *testing.F) {
	for _, m := range []Message{{Kind: KindGo}, {Kind: KindPlan, Plan: &Plan{JobID: "j", Programs: []Program{{Name: "p"}}}}, {Kind: KindRelay, ID: 2, Command: []string{"ssh"}}} {
		var b bytes.Buffer
		require.NoError(f, Write(&b, m))
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		if m.Plan != nil {
			m.Plan.Check() // must not panic
		}
		var again bytes.Buffer
		require.NoError(t, Write(&again, m))
		got, err := Read(&again)
		require.NoError(t, err)
		require.Equal(t, m.Kind, got.Kind)
	})
}

func TestPlanThatIsTooLongNamesARemedy(t *testing.T) {
	plan := &Plan{Dir: strings.Repeat("x", MaxMessage)}
	require.ErrorContains(t, Write(io.Discard, Message{Kind: KindPlan, Plan: plan}), "give it fewer ranks")
}
