package active

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

func TestDecodeFrameReturnsEncodedFrame(t *testing.T) {
	var block []byte
	frames := []frame{
		{kind: frameRequest, name: pipe.Hash("add"), id: 7, payload: []byte("12345")},
		{kind: frameReply, id: 1 << 60, payload: []byte{}},
		{kind: frameFailure, reason: panicked, id: 3, payload: bytes.Repeat([]byte{9}, 64)},
	}
	for i := range frames {
		room := bytes.Repeat([]byte{0xff}, frameSize(len(frames[i].payload)))
		frames[i].encode(room)
		block = append(block, room...)
	}
	n, err := countFrames(block)
	require.NoError(t, err)
	require.Equal(t, len(frames), n)
	for _, want := range frames {
		var got frame
		got, block, err = decodeFrame(block)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Empty(t, block)
}

// FuzzFrames decodes what anyone might have put there: each frame lies within it.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, frameHeader))
	whole := make([]byte, frameSize(3))
	(&frame{kind: frameRequest, payload: []byte("abc")}).encode(whole)
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := countFrames(b)
		if err != nil {
			require.ErrorIs(t, err, rpipe.ErrCorrupt)
			return
		}
		used := 0
		for range n {
			var one frame
			one, b, err = decodeFrame(b)
			require.NoError(t, err)
			require.Equal(t, len(one.payload), cap(one.payload))
			used += frameSize(len(one.payload))
		}
		require.Empty(t, b)
		require.GreaterOrEqual(t, used, n*frameHeader)
	})
}
