package pmi

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzMessages decodes bytes in both versions, and encodes again what they decode to.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("cmd=get kvsname=k key=a value=b\n"), false)
	f.Add([]byte("    32cmd=kvs-put;key=a0;value=b,;;:[];"), true)
	f.Add([]byte("    10cmd=a;;0;;"), true) // a command with semicolons
	f.Fuzz(func(t *testing.T, b []byte, framed bool) {
		read, encode := readLine, message.line
		if framed {
			read, encode = readFrame, message.frame
		}
		m, err := read(bufio.NewReaderSize(bytes.NewReader(b), MaxMessage))
		if err != nil {
			return
		}
		again, err := encode(m)
		if err != nil {
			return // a key with a blank, which only the other version has
		}
		back, err := read(bufio.NewReaderSize(bytes.NewReader(again), MaxMessage))
		require.NoError(t, err, "%q", again)
		require.Equal(t, m, back)
	})
}

// FuzzServer has a server read bytes of a rank.
func FuzzServer(f *testing.F) {
	f.Add([]byte("cmd=init pmi_version=1 pmi_subversion=1\ncmd=put kvsname=k key=a value=b\ncmd=barrier_in\ncmd=finalize\n"))
	f.Add([]byte("cmd=init pmi_version=2 pmi_subversion=0\n    14cmd=kvs-fence;    10cmd=abort;"))
	f.Add([]byte("mcmd=spawn\nnprocs=1\nendcmd\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		s := NewServer([]int{0}, func(int) int { return 0 }, Hooks{})
		mine, theirs := net.Pipe()
		done := make(chan struct{})
		go func() { s.Serve(0, theirs); close(done) }()
		go func() { mine.Write(b); mine.Close() }()
		io.Copy(io.Discard, mine)
		<-done
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("(vector,(0,2,4))", 8)
	f.Fuzz(func(t *testing.T, text string, size int) {
		nodes, err := parseMapping(text, size%5000)
		if err != nil {
			return
		}
		require.Len(t, nodes, size%5000)
		if again := Mapping(nodes); again != "" {
			back, err := parseMapping(again, len(nodes))
			require.NoError(t, err)
			require.Equal(t, nodes, back)
		}
		require.True(t, strings.HasPrefix(text, "(vector"))
	})
}
