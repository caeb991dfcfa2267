//go:build linux

package main

import (
	"bytes"
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/tools/roce/link"
	"github.com/gopgas/gopgas/internal/tools/roce/wire"
)

// inNamespace runs f on a thread with a network of its own, whose only interface is lo.
func inNamespace(t *testing.T, f func()) {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // the thread ends with this goroutine
		defer close(done)        // also after an assertion that fails
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = raise("lo")
		}
		done <- err
		if err == nil {
			f()
		}
	}()
	if err := <-done; err != nil {
		<-done
		t.Skipf("a network namespace needs root: %v", err)
	}
	<-done
}

func raise(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func TestSniffReadsAnInterface(t *testing.T) {
	inNamespace(t, func() {
		l, err := link.Open("lo", false)
		require.NoError(t, err)
		defer l.Close()
		sniffed, sent := make(chan struct{}), make(chan struct{})
		go func() { // until sniff has seen enough
			defer close(sent)
			every := time.NewTicker(time.Millisecond)
			defer every.Stop()
			for {
				select {
				case <-sniffed:
					return
				case <-every.C:
					l.Write(frame(wire.Packet{Op: wire.SendOnly, QPN: 9, Payload: []byte("hello")}))
				}
			}
		}()
		var out bytes.Buffer
		err = run([]string{"sniff", "-n", "3", "-t", testwatch.Patience().String(), "lo"}, &out, &out)
		close(sniffed)
		<-sent
		require.NoError(t, err)
		require.Contains(t, out.String(), "3 packets, 0 with a wrong ICRC, 0 malformed; 0 other frames")

		out.Reset()
		require.NoError(t, run([]string{"sniff", "-q", "-t", "1ms", "lo"}, &out, &out), "it ends without packets")
		require.Error(t, run([]string{"sniff", "eth7"}, &out, &out))
	})
}

func TestLinkReadsEachFrameOnce(t *testing.T) {
	inNamespace(t, func() {
		reader, err := link.Open("lo", true)
		require.NoError(t, err)
		defer reader.Close()
		late := context.AfterFunc(testwatch.Context(t), func() { reader.Interrupt() })
		defer late()
		writer, err := link.Open("lo", false)
		require.NoError(t, err)
		defer writer.Close()
		b := make([]byte, 2000)
		for i := range byte(5) {
			want := frame(wire.Packet{Op: wire.SendOnly, QPN: 9, Payload: []byte{i}})
			_, err := writer.Write(want)
			require.NoError(t, err)
			n, err := reader.Read(b)
			require.NoError(t, err)
			require.Equal(t, want, b[:n])
		}
		dropped, err := reader.Dropped()
		require.NoError(t, err)
		require.Zero(t, dropped)
	})
}
