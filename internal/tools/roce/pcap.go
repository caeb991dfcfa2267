//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// A pcap file is a header of 24 bytes and records: 16 bytes with time and lengths, then the frame.
// Numbers have the byte order of the writer's machine.
const (
	pcapMagic      = 0xa1b2c3d4
	pcapMagicNanos = 0xa1b23c4d
	pcapngMagic    = 0x0a0d0d0a
	pcapHeader     = 24
	pcapRecord     = 16
	pcapEthernet   = 1
	pcapMost       = 256 << 10 // bytes of a frame
)

var errPcap = errors.New("no pcap file of Ethernet frames")

// A pcapReader reads frames of a pcap file.
type pcapReader struct {
	in    io.Reader
	order binary.ByteOrder
	tick  time.Duration // of the fractions of seconds
	head  [pcapRecord]byte
	frame []byte
}

// newPcapReader reads the header of a capture, in either order of bytes, with micro- or
// nanoseconds.
func newPcapReader(in io.Reader) (*pcapReader, error) {
	var b [pcapHeader]byte
	if _, err := io.ReadFull(in, b[:]); err != nil {
		return nil, fmt.Errorf("%w: its header: %w", errPcap, err)
	}
	r := &pcapReader{in: in, order: binary.LittleEndian, tick: time.Microsecond}
	if magic := binary.BigEndian.Uint32(b[:]); magic == pcapMagic || magic == pcapMagicNanos {
		r.order = binary.BigEndian
	}
	switch magic := r.order.Uint32(b[:]); magic {
	case pcapMagic:
	case pcapMagicNanos:
		r.tick = time.Nanosecond
	case pcapngMagic:
		return nil, fmt.Errorf("%w, but of pcapng: `editcap -F pcap OLD NEW` converts it", errPcap)
	default:
		return nil, fmt.Errorf("%w: it begins with %#x", errPcap, magic)
	}
	if kind := r.order.Uint32(b[20:]) & 0xffff; kind != pcapEthernet {
		return nil, fmt.Errorf("%w, but of link type %d: capture at one interface, not at all", errPcap, kind)
	}
	return r, nil
}

// Next returns the next frame, which is valid until the next call, and its time, or io.EOF. A frame
// that the writer cut is as long as its rest.
func (r *pcapReader) Next() (frame []byte, at time.Time, err error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: it ends in a record: %w", errPcap, err)
		}
		return nil, at, err
	}
	n := r.order.Uint32(r.head[8:])
	if n > pcapMost {
		return nil, at, fmt.Errorf("%w: a frame of %d bytes", errPcap, n)
	}
	if uint32(cap(r.frame)) < n {
		r.frame = make([]byte, n)
	}
	r.frame = r.frame[:n]
	if _, err := io.ReadFull(r.in, r.frame); err != nil {
		return nil, at, fmt.Errorf("%w: it ends in a frame: %w", errPcap, err)
	}
	at = time.Unix(int64(r.order.Uint32(r.head[0:])), int64(r.order.Uint32(r.head[4:]))*int64(r.tick))
	return r.frame, at, nil
}

// A pcapWriter writes frames to a pcap file whose times have nanoseconds.
type pcapWriter struct{ out io.Writer }

// newPcapWriter writes the header of a capture with nanoseconds.
func newPcapWriter(out io.Writer) (*pcapWriter, error) {
	b := binary.LittleEndian.AppendUint32(nil, pcapMagicNanos)
	b = binary.LittleEndian.AppendUint16(b, 2) // version 2.4
	b = binary.LittleEndian.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...) // time zone and its accuracy
	b = binary.LittleEndian.AppendUint32(b, pcapMost)
	b = binary.LittleEndian.AppendUint32(b, pcapEthernet)
	_, err := out.Write(b)
	return &pcapWriter{out}, err
}

// Write writes a frame that was received at a time.
func (w *pcapWriter) Write(frame []byte, at time.Time) error {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, pcapRecord+len(frame)), uint32(at.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(at.Nanosecond()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(frame)))
	_, err := w.out.Write(append(b, frame...))
	return err
}
