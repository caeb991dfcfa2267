//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

func frame(p wire.Packet) []byte {
	p.PKey = wire.DefaultPKey
	f := wire.Frame{Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), SrcPort: 50000, Packet: p}
	return f.Append(nil)
}

// recorded is the time of frame i of a recording.
func recorded(i int) time.Time { return time.Unix(int64(i)+1, 2001) }

// recording returns a pcap file. Two of its frames are right, one has a wrong ICRC, one is malformed,
// one is of another protocol, and a switch marked one.
func recording(t *testing.T) string {
	write := wire.Packet{Op: wire.WriteOnly, QPN: 0x11, PSN: 5, Addr: 0x1000, RKey: 0x77, Length: 3, Payload: []byte("abc"), AckRequest: true}
	ack := wire.Packet{Op: wire.Acknowledge, QPN: 0x12, PSN: 5, Syndrome: wire.Ack, MSN: 1}
	nak := ack
	nak.Syndrome = wire.NakAccess
	wrong := frame(nak)
	wrong[len(wrong)-1]++
	malformed := frame(ack)
	malformed[39]-- // the UDP length: no room for all of the AETH
	marked := frame(ack)
	marked[15] = congested
	name := filepath.Join(t.TempDir(), "recorded.pcap")
	var b bytes.Buffer
	w, err := newPcapWriter(&b)
	require.NoError(t, err)
	for i, f := range [][]byte{frame(write), frame(ack), wrong, malformed, make([]byte, 60), marked} {
		require.NoError(t, w.Write(f, recorded(i)))
	}
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o600))
	return name
}

func TestSniffDescribesAndCountsPackets(t *testing.T) {
	name := recording(t)
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"sniff", "-r", name, "-w", name + ".copy"}, &out, &out), errSuspect)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, []string{
		"10.0.0.1 > 10.0.0.2 qp 0x000011 psn        5 WRITE_ONLY addr 0x1000 key 0x77 length 3, 3 bytes, asks for an ACK",
		"10.0.0.1 > 10.0.0.2 qp 0x000012 psn        5 ACK msn 1",
	}, lines[:2])
	require.Contains(t, lines[2], "NAK 0x62: remote access error msn 1, WRONG ICRC 0x")
	require.Contains(t, lines[3], "MALFORMED: ")
	require.Contains(t, lines[4], "ACK msn 1, marked by ECN")
	require.Equal(t, "4 packets, 1 with a wrong ICRC, 1 malformed; 1 other frames", lines[6])
	var table [][]string
	for _, row := range lines[8:] {
		table = append(table, strings.Fields(row))
	}
	require.Equal(t, [][]string{
		{"10.0.0.1", "10.0.0.2", "0x000011", "WRITE_ONLY", "1", "0", "0"},
		{"10.0.0.1", "10.0.0.2", "0x000012", "ACK", "2", "0", "1"},
		{"10.0.0.1", "10.0.0.2", "0x000012", "NAK", "0x62:", "remote", "access", "error", "1", "1", "0"},
	}, table)

	var again bytes.Buffer
	require.ErrorIs(t, run([]string{"sniff", "-r", name + ".copy"}, &again, &again), errSuspect)
	require.Equal(t, strings.Replace(out.String(), "1 other frames", "0 other frames", 1), again.String(), "the file has the packets alone")
}

// TestSniffFindsFramesOfSoftwareDeviceIntact reads a frame of each operation that rdma_rxe of Linux
// 6.1 sent in the tests of verbs/ibv.
func TestSniffFindsFramesOfSoftwareDeviceIntact(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"sniff", "-r", "testdata/rxe.pcap"}, &out, &out))
	for _, what := range []string{"SEND_FIRST, 1024 bytes", "SEND_MIDDLE", "SEND_LAST, 452 bytes", "WRITE_FIRST addr 0x10000000000", "WRITE_MIDDLE", "WRITE_LAST",
		"READ_REQUEST", "FETCH_ADD", "8 packets, 0 with a wrong ICRC, 0 malformed; 0 other frames"} {
		require.Contains(t, out.String(), what)
	}
}

func TestSniffEndsAfterNumberOfPackets(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run([]string{"sniff", "-q", "-n", "2", "-r", recording(t)}, &out, &out), "the first two are right")
	require.Contains(t, out.String(), "2 packets, 0 with a wrong ICRC")
	require.NotContains(t, out.String(), "psn")
}

func TestPcapReaderTakesBothByteOrders(t *testing.T) {
	b, err := os.ReadFile(recording(t))
	require.NoError(t, err)
	r, err := newPcapReader(bytes.NewReader(b))
	require.NoError(t, err)
	first, at, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, recorded(0), at)
	swapped := append([]byte(nil), b[:pcapHeader+pcapRecord+len(first)]...)
	for i := 0; i < pcapHeader+pcapRecord; i += 4 {
		binary.BigEndian.PutUint32(swapped[i:], binary.LittleEndian.Uint32(b[i:]))
	}
	r, err = newPcapReader(bytes.NewReader(swapped))
	require.NoError(t, err)
	again, at, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, recorded(0), at)
}

// TestSniffKeepsTimesOfPackets copies packets of files in microseconds and in nanoseconds.
func TestSniffKeepsTimesOfPackets(t *testing.T) {
	name := recording(t)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	binary.LittleEndian.PutUint32(b, pcapMagic)
	micros := name + ".micros"
	require.NoError(t, os.WriteFile(micros, b, 0o600))
	for from, tick := range map[string]time.Duration{name: time.Nanosecond, micros: time.Microsecond} {
		var out bytes.Buffer
		require.ErrorIs(t, run([]string{"sniff", "-q", "-r", from, "-w", from + ".copy"}, &out, &out), errSuspect)
		copied, err := os.Open(from + ".copy")
		require.NoError(t, err)
		defer copied.Close()
		r, err := newPcapReader(copied)
		require.NoError(t, err)
		for _, i := range []int{0, 1, 2, 3, 5} { // frame 4 is of another protocol
			_, at, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, time.Unix(recorded(i).Unix(), int64(recorded(i).Nanosecond())*int64(tick)), at, from)
		}
		_, _, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
	}
}

func TestPcapReaderRefuses(t *testing.T) {
	b, err := os.ReadFile(recording(t))
	require.NoError(t, err)
	file := func(change func(b []byte) []byte) string {
		name := filepath.Join(t.TempDir(), "f.pcap")
		require.NoError(t, os.WriteFile(name, change(append([]byte(nil), b...)), 0o600))
		return name
	}
	for name, c := range map[string]struct {
		file, says string
	}{
		"nothing":             {file(func(b []byte) []byte { return nil }), "its header"},
		"text":                {file(func(b []byte) []byte { b[0] = 'a'; return b }), "it begins with"},
		"pcapng":              {file(func(b []byte) []byte { copy(b, "\x0a\x0d\x0d\x0a"); return b }), "editcap"},
		"another link type":   {file(func(b []byte) []byte { b[20] = 113; return b }), "one interface"},
		"a cut record":        {file(func(b []byte) []byte { return b[:pcapHeader+3] }), "ends in a record"},
		"a cut frame":         {file(func(b []byte) []byte { return b[:pcapHeader+pcapRecord+3] }), "ends in a frame"},
		"a frame of a gibyte": {file(func(b []byte) []byte { b[pcapHeader+11] = 0x40; return b }), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run([]string{"sniff", "-r", c.file}, &out, &out)
			require.ErrorIs(t, err, errPcap)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// FuzzSniff reads any file: it ends, and prints a line for each packet.
func FuzzSniff(f *testing.F) {
	var b bytes.Buffer
	w, err := newPcapWriter(&b)
	require.NoError(f, err)
	require.NoError(f, w.Write(frame(wire.Packet{Op: wire.FetchAdd, QPN: 1, Swap: 2}), time.Unix(1, 0)))
	require.NoError(f, w.Write(frame(wire.Packet{Op: wire.AtomicAcknowledge, QPN: 1}), time.Unix(1, 0)))
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := newPcapReader(bytes.NewReader(b))
		if err != nil {
			require.ErrorIs(t, err, errPcap)
			return
		}
		var out bytes.Buffer
		s := sniffer{summary: summary{counts: map[direction]*count{}}, out: &out}
		if err := s.run(r); err == nil {
			require.GreaterOrEqual(t, bytes.Count(out.Bytes(), []byte("\n")), s.packets+2)
		}
	})
}
