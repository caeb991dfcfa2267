//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
)

// peerFlag makes a doctor pose as the rank whose memory another process maps.
const peerFlag = "as-peer"

const (
	littleMemory = 1 << 30
	seals        = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
)

func checkMemory() finding { return judgeMemory(memory.Available()) }

// judgeMemory judges the amount of memory that ranks can take, and names its
// bound.
func judgeMemory(left int64, bound string) finding {
	text := fmt.Sprintf("%s left for symmetric heaps, bounded by %s", bytesText(uint64(left)), bound)
	if left < littleMemory {
		return finding{warn, text, "free memory, raise the container's limit, or pass a small --heap"}
	}
	return finding{verdict: ok, text: text}
}

// sealedMemfd makes memory as ranks share it, one page with text in it.
func sealedMemfd(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("grun-doctor", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal: %w", err)
	}
	return f, nil
}

// checkSeals looks whether a sealed memfd refuses to shrink. A rank could otherwise crash its peers
// by shrinking it.
func checkSeals() finding {
	const mend = "use Linux 5.14 or newer; in a sandbox, allow memfd_create and fcntl seals; --provider tcp works without"
	f, err := sealedMemfd("x")
	if err != nil {
		return failing("shared memory", err, mend)
	}
	defer f.Close()
	if err := f.Truncate(0); err == nil {
		return finding{fail, "a sealed memfd could be shrunk", mend}
	}
	return finding{verdict: ok, text: "can be made and cannot shrink"}
}

// checkPeer maps the memory of another process through /proc, as ranks do.
func checkPeer() finding {
	const mend = "ranks of one user must be able to open /proc/PID/fd of each other: mount /proc without hidepid, allow ptrace reads; or use --provider tcp"
	const text = "hello, neighbor"
	shared, err := sealedMemfd(text)
	if err != nil {
		return failing("shared memory", err, mend)
	}
	defer shared.Close()
	peer := exec.Command("/proc/self/exe", "doctor", "--"+peerFlag)
	peer.ExtraFiles = []*os.File{shared}
	stdin, err := peer.StdinPipe()
	if err != nil {
		return failing("start a peer", err, mend)
	}
	if err := peer.Start(); err != nil {
		return failing("start a peer", err, mend)
	}
	defer peer.Wait()   //nolint:errcheck // it only waits for the end of its input
	defer stdin.Close() //nolint:errcheck // the peer sees the end of its input either way
	got, err := readPeer(peer.Process.Pid, 3, len(text))
	if err != nil {
		return failing("another process's memory", err, mend)
	}
	if got != text {
		return finding{fail, "another process's memory shows something else", mend}
	}
	return finding{verdict: ok, text: "of other processes can be mapped through /proc/PID/fd"}
}

// readPeer maps a file of another process by its descriptor there, as provider shm does, and
// returns its first n bytes.
func readPeer(pid, fd, n int) (string, error) {
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	mem, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return "", fmt.Errorf("mmap: %w", err)
	}
	defer unix.Munmap(mem) //nolint:errcheck // it was mapped
	return string(mem), nil
}
