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
	for _, want := range frames {
		var got frame
		var err error
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
		for len(b) > 0 {
			one, rest, err := decodeFrame(b)
			if err != nil {
				require.ErrorIs(t, err, rpipe.ErrCorrupt)
				return
			}
			require.Equal(t, len(one.payload), cap(one.payload))
			require.Len(t, rest, len(b)-frameSize(len(one.payload)))
			require.GreaterOrEqual(t, len(b)-len(rest), frameHeader)
			b = rest
		}
	})
}
