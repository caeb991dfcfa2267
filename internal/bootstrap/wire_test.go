package bootstrap

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func drawMessage(t *rapid.T) message {
	m := message{
		kind: kind(rapid.IntRange(int(kindExchange), int(kindEnd)-1).Draw(t, "kind")),
		code: rapid.Uint8().Draw(t, "code"),
		rank: int(rapid.Int32().Draw(t, "rank")),
		id:   rapid.Uint64().Draw(t, "id"),
		name: rapid.StringN(0, 100, 100).Draw(t, "name"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "runs of members") {
		first := int(rapid.Int32Max(math.MaxInt32-3).Draw(t, "member"))
		for i := range rapid.IntRange(1, 3).Draw(t, "consecutive") {
			m.members = append(m.members, first+i)
		}
	}
	for range rapid.IntRange(0, 5).Draw(t, "runs of parts") {
		part := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 50), rapid.SliceOfN(rapid.Byte(), 0, 1)).Draw(t, "part")
		for range rapid.IntRange(1, 3).Draw(t, "equal") {
			m.parts = append(m.parts, part)
		}
	}
	return m
}

func TestMessagesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := drawMessage(t)
		frame, err := sent.frame()
		require.NoError(t, err)
		got, err := readMessage(bytes.NewReader(frame))
		require.NoError(t, err)
		require.Len(t, got.parts, len(sent.parts))
		for i := range sent.parts {
			require.True(t, bytes.Equal(sent.parts[i], got.parts[i]))
		}
		sent.parts, got.parts = nil, nil
		require.Equal(t, sent, got)
	})
}

func TestTruncatedMessagesAreErrors(t *testing.T) {
	frame, err := (&message{kind: kindCall, name: "service", members: []int{1, 2}, parts: [][]byte{{1}, {2, 3}}}).frame()
	require.NoError(t, err)
	for n := range len(frame) - headerSize {
		_, err := decode(kindCall, frame[headerSize:headerSize+n])
		require.ErrorIs(t, err, ErrWire, "%d bytes", n)
	}
	_, err = decode(kindCall, append(frame[headerSize:], 0))
	require.ErrorIs(t, err, ErrWire, "one byte too many")
}

func TestTooLargeMessagesAreRefusedBeforeTheyAreSent(t *testing.T) {
	_, err := (&message{kind: kindTell, parts: [][]byte{make([]byte, MaxMessage)}}).frame()
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = (&message{kind: kindTell, name: string(make([]byte, maxName+1))}).frame()
	require.ErrorIs(t, err, ErrTooLarge)
}

// FuzzDecode holds that no body makes the decoder panic, and that an accepted
// body means the same when it is encoded again.
func FuzzDecode(f *testing.F) {
	frame, _ := (&message{kind: kindCall, name: "s", members: []int{0}, parts: [][]byte{{1}}}).frame()
	f.Add(byte(kindCall), frame[headerSize:])
	f.Add(byte(kindExchange), []byte{})
	frame, _ = (&message{kind: kindExchange, members: []int{0, 1, 2, 9}, parts: [][]byte{{1}, {2}, {2}, {1}}}).frame()
	f.Add(byte(kindExchange), frame[headerSize:])
	f.Fuzz(func(t *testing.T, k byte, body []byte) {
		m, err := decode(kind(k), body)
		if err != nil {
			require.ErrorIs(t, err, ErrWire)
			return
		}
		again, err := m.frame()
		require.NoError(t, err)
		require.Equal(t, body, again[headerSize:])
	})
}

// FuzzGreet holds that no bytes of a stranger get past the handshake, panic or
// draw more than the challenge.
func FuzzGreet(f *testing.F) {
	f.Add(append(appendHeader(nil, kindHello, helloSpan), make([]byte, helloSpan)...))
	f.Fuzz(func(t *testing.T, said []byte) {
		conn := &script{in: bytes.NewReader(said)}
		_, err := greet(conn, testSecret)
		require.Error(t, err)
		require.LessOrEqual(t, conn.out.Len(), headerSize+nonceSize)
	})
}

// script is a connection whose peer sends prepared bytes.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(b []byte) (int, error)  { return s.in.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.out.Write(b) }

// Each contribution of a rank names all members, and each result has the parts of all.
func TestFrameOfAnExchangeIsSmallIfRanksAreAlike(t *testing.T) {
	m := message{kind: kindExchange, name: "team/world", members: ranks(4096), parts: make([][]byte, 4096)}
	for i := range m.parts {
		m.parts[i] = []byte("the card of each rank of host " + string(rune('a'+i/256)))
	}
	frame, err := m.frame()
	require.NoError(t, err)
	require.Less(t, len(frame), 1<<10)
	got, err := readMessage(bytes.NewReader(frame))
	require.NoError(t, err)
	require.Equal(t, m, got)
}

func TestDecoderRefusesRunsThatMultiply(t *testing.T) {
	m := message{kind: kindExchange, members: ranks(3), parts: [][]byte{{1}, {1}}}
	frame, err := m.frame()
	require.NoError(t, err)
	body := frame[headerSize:]
	members, parts := bytes.Clone(body), bytes.Clone(body)
	binary.LittleEndian.PutUint32(members[4+1+8+2+4+4:], maxItems+1)
	binary.LittleEndian.PutUint32(parts[len(parts)-4:], maxItems+1)
	for _, body := range [][]byte{members, parts} {
		_, err = decode(kindExchange, body)
		require.ErrorIs(t, err, ErrWire)
	}
}
