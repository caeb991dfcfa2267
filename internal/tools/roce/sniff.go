//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gopgas/gopgas/internal/tools/roce/link"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

const sniffHelp = `Decodes packets of RoCE v2, and checks the invariant CRC (ICRC) of each.

	roce sniff eth0                   # until Ctrl-C; as root, or with CAP_NET_RAW
	roce sniff -n 1000 -w f.pcap eth0 # keeps the packets in a file
	roce sniff -r f.pcap              # reads them again, or those of tcpdump -w

It prints a line for each packet, and counts at the end: who sent which operation to which queue
pair, how many ICRCs were wrong, and how many packets a switch marked for congestion
(ECN). It exits with 1 if a packet was malformed or had a wrong ICRC.

An RDMA NIC sends and receives its packets past the kernel, so an interface of its host
does not show them. Capture at a mirror port of the switch, or by tcpdump at the RDMA device
where tcpdump knows it (tcpdump -D lists mlx5_0, for instance), and read the file with -r.
The kernel's software device (rdma_rxe) shows all packets that leave the host. Two queue pairs
of one software device never reach an interface.

At a first meeting with a device, look for these:

	ICRC     a few wrong ones: a switch or an adapter damages packets in its memory, as Ethernet's
	         own CRC finds damage on cables; all wrong: a router or an adapter changes headers
	NAK 0x60 packets were lost: the network is not lossless, or ECN and pause frames are off
	RNR NAK  a receiver posts its receives too late
	CNP      the receiver's NIC asks the sender to slow down

`

// A source returns frames and their times until io.EOF.
type source interface {
	Next() (frame []byte, at time.Time, err error)
}

// sniff decodes the packets of an interface or of a file.
func sniff(args []string, out, help io.Writer) (failed error) {
	o, err := sniffOptionsOf(args, help)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if o.limit > 0 {
		ctx, stop = context.WithTimeout(ctx, o.limit)
		defer stop()
	}
	frames, closeAll, err := open(ctx, o.from, o.on)
	if err != nil {
		return err
	}
	defer closeAll()
	s := sniffer{summary: summary{counts: map[direction]*count{}}, out: out, quiet: o.quiet, most: o.most}
	if o.to != "" {
		file, err := os.Create(o.to)
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, file.Close()) }()
		if s.keep, err = newPcapWriter(file); err != nil {
			return err
		}
	}
	if s.quiet && o.from == "" {
		fmt.Fprintf(out, "listening at %s\n", o.on)
	}
	return s.run(frames)
}

// sniffOptions are the options of sniff, see the texts of the flags.
type sniffOptions struct {
	from, to, on string // files, and the interface
	most         int
	limit        time.Duration
	quiet        bool
}

// sniffOptionsOf reads the arguments of sniff. It returns an error if they make no sense together.
func sniffOptionsOf(args []string, help io.Writer) (o sniffOptions, err error) {
	f := flags("sniff", sniffHelp, help)
	f.StringVar(&o.from, "r", "", "read this pcap `file` instead of an interface")
	f.StringVar(&o.to, "w", "", "write the packets to this pcap `file`")
	f.IntVar(&o.most, "n", 0, "end after this `number` of packets; 0: no limit")
	f.DurationVar(&o.limit, "t", 0, "end after this `time`; 0: no limit")
	f.BoolVar(&o.quiet, "q", false, "print only the counts")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if (o.from == "") != (f.NArg() == 1) || f.NArg() > 1 || o.most < 0 || o.limit < 0 {
		return o, errors.New("sniff: name one interface, or a file with -r (see -h)")
	}
	o.on = f.Arg(0)
	return o, nil
}

// open opens a file or an interface. Frames of an interface end with ctx.
func open(ctx context.Context, file, iface string) (source, func(), error) {
	if file != "" {
		in, err := os.Open(file)
		if err != nil {
			return nil, nil, err
		}
		r, err := newPcapReader(in)
		if err != nil {
			in.Close()
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		return r, func() { in.Close() }, nil
	}
	l, err := link.Open(iface, true)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { l.Interrupt() }) //nolint:errcheck // it is open
	return &wireSource{l, make([]byte, pcapMost)}, func() {
		stop()
		l.Close() //nolint:errcheck // it was read to its end
	}, nil
}

// wireSource is the frames of an interface.
type wireSource struct {
	link *link.Link
	b    []byte
}

// Next returns the next frame of the link, or io.EOF when the time is over.
func (w *wireSource) Next() ([]byte, time.Time, error) {
	n, err := w.link.Read(w.b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return w.b[:n], time.Now(), err
}

// Dropped returns the number of frames that the kernel dropped, 0 if the kernel does not know.
func (w *wireSource) Dropped() uint32 {
	n, _ := w.link.Dropped()
	return n
}

// A sniffer prints and counts packets.
type sniffer struct {
	summary
	out   io.Writer
	quiet bool
	most  int         // packets; 0: all
	keep  *pcapWriter // or nil
}

// run prints the counts at the end, also of frames ahead of an error.
func (s *sniffer) run(frames source) error {
	err := s.takeAll(frames)
	if live, ok := frames.(interface{ Dropped() uint32 }); ok {
		s.dropped = live.Dropped()
	}
	if failed := s.print(s.out); err == nil {
		err = failed
	}
	if err == nil && s.wrong+s.malformed > 0 {
		err = errSuspect
	}
	return err
}

// takeAll takes frames until the source ends, or as many packets have come as were requested.
func (s *sniffer) takeAll(frames source) error {
	for s.most == 0 || s.packets+s.malformed < s.most {
		b, at, err := frames.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = s.take(b, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take counts a frame, and prints and keeps it with its time if it is one of RoCE v2.
func (s *sniffer) take(b []byte, at time.Time) error {
	f, err := wire.DecodeFrame(b)
	if errors.Is(err, wire.ErrOther) {
		s.other++
		return nil
	}
	text := line(&f)
	if err != nil {
		s.malformed++
		text = fmt.Sprintf("MALFORMED: %v", err)
	} else {
		s.add(&f)
	}
	if !s.quiet {
		fmt.Fprintln(s.out, text)
	}
	if s.keep == nil {
		return nil
	}
	return s.keep.Write(b, at)
}
