//go:build linux

package tcp

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recordWriter makes records of TLS 1.3 by hand, as RFC 8446 has them, for the cipher
// suites with AES.
type recordWriter struct {
	t        testing.TB
	hash     func() hash.Hash
	keySize  int
	secret   []byte
	sequence uint64
}

// newRecordWriter takes over the client's side from a key log.
func newRecordWriter(t testing.TB, log string) *recordWriter {
	t.Helper()
	for line := range strings.Lines(log) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "CLIENT_TRAFFIC_SECRET_0" {
			secret, err := hex.DecodeString(fields[2])
			require.NoError(t, err)
			require.Len(t, secret, sha256.Size, "TLS_AES_128_GCM_SHA256, which crypto/tls prefers")
			return &recordWriter{t: t, hash: sha256.New, keySize: 16, secret: secret}
		}
	}
	require.Fail(t, "no secret in the log")
	return nil
}

// expand is HKDF-Expand-Label of RFC 8446, 7.1, without a context.
func (w *recordWriter) expand(label string, size int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(size))
	info = append(info, byte(len("tls13 "+label)))
	info = append(info, "tls13 "+label...)
	key, err := hkdf.Expand(w.hash, w.secret, string(append(info, 0)), size)
	require.NoError(w.t, err)
	return key
}

// update goes on with the next secret.
func (w *recordWriter) update() { w.secret, w.sequence = w.expand("traffic upd", sha256.Size), 0 }

// record encrypts a record.
func (w *recordWriter) record(kind byte, content []byte) []byte {
	block, err := aes.NewCipher(w.expand("key", w.keySize))
	require.NoError(w.t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(w.t, err)
	nonce := w.expand("iv", aead.NonceSize())
	for i := range 8 {
		nonce[len(nonce)-1-i] ^= byte(w.sequence >> (8 * i))
	}
	w.sequence++
	content = append(append([]byte(nil), content...), kind)
	header := binary.BigEndian.AppendUint16([]byte{0x17, 3, 3}, uint16(len(content)+aead.Overhead()))
	return aead.Seal(header, nonce, content, header)
}

// FuzzTLSRecords puts bytes into the records of a connection, in front of its handshake or
// behind it. The receiver reads a prefix of the true bytes, and nothing else.
func FuzzTLSRecords(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), false, uint16(0), byte(7))
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), false, uint16(0), byte(1))
	f.Add([]byte("\x17\x03\x03\x00\x13aaaaaaaaaaaaaaaaaaa"), true, uint16(30), byte(3))
	f.Add([]byte("\x14\x03\x03\x00\x01\x01"), true, uint16(0), byte(255))
	f.Fuzz(func(t *testing.T, forged []byte, behind bool, at uint16, pieces byte) {
		n := 1 + int(pieces)
		if !behind {
			s := new(secured)
			s.conn = tls.Server(transport{s}, keysOf(t, 1))
			defer s.stop()
			for len(forged) > 0 {
				n = min(n, len(forged))
				s.arrived, forged = append(s.arrived, forged[:n]...), forged[n:]
				ended, err := s.step()
				require.False(t, ended && err == nil, "a handshake without the key")
				if ended {
					return
				}
			}
			return
		}
		l := newLayers(t, 1<<20)
		var o outbox
		sent := []byte("one record, and another one")
		for _, part := range [][]byte{sent[:11], sent[11:]} {
			o.refer(piece{mem: part})
			require.NoError(t, l[0].encrypt(&o))
		}
		off := min(int(at), len(l[0].leaving)-l[0].sent) + l[0].sent
		l[0].leaving = slices.Insert(l[0].leaving, off, forged...)
		var got []byte
		b := make([]byte, 100)
		failed := false
		l.carry(t, 0, 1, n, func() {
			for !failed {
				n, err := l[1].read(b)
				got = append(got, b[:n]...)
				if failed = err != nil && !errors.Is(err, errNoBytes); err != nil {
					return
				}
			}
		})
		require.True(t, bytes.HasPrefix(sent, got), "%q", got)
	})
}
