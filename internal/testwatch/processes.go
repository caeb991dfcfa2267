package testwatch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Processes counts the starts, the ends and the seconds of CPU time of processes whose steps a test
// cannot read. A process that waits in vain computes less than one second within Patience. The
// function tells reports whether an environment belongs to one of them; its entries end with zero
// bytes.
func Processes(tells func(environ []byte) bool) (steps func() uint64) {
	return func() (n uint64) {
		var ticks uint64
		for _, pid := range processes(tells) {
			n += uint64(pid) << 32
			ticks += computed(strconv.Itoa(pid))
		}
		return n + ticks/100
	}
}

// Marked returns a tells for environments with an entry NAME=value.
func Marked(entry string) (tells func(environ []byte) bool) {
	return func(environ []byte) bool {
		return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00"))
	}
}

// Showing returns a context that ends as ctx does. If a watchdog ended that, it ends later: first the
// processes of Go whose environments tells knows print where their goroutines are, and end.
func Showing(ctx context.Context, tells func(environ []byte) bool) context.Context {
	showing, end := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrStuck) {
			quit(tells)
		}
		end(context.Cause(ctx))
	})
	return showing
}

// quit has processes print their goroutines, and waits for their ends, but not for long.
func quit(tells func(environ []byte) bool) {
	for range looks / 3 {
		left := processes(tells)
		for _, pid := range left {
			for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGCONT} { // one that was stopped, too
				_ = syscall.Kill(pid, sig) // it may have ended
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(interval())
	}
}

// processes returns the processes whose environments tells knows.
func processes(tells func(environ []byte) bool) (pids []int) {
	dirs, _ := os.ReadDir("/proc")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(dir.Name())
		if err != nil {
			continue
		}
		if env, err := os.ReadFile("/proc/" + dir.Name() + "/environ"); err == nil && tells(env) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// computed returns the CPU time of a process, in hundredths of a second.
func computed(pid string) (ticks uint64) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // behind its name, which is in parentheses
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	for _, field := range fields[11:13] { // in user mode, in the kernel
		n, _ := strconv.ParseUint(field, 10, 64) // the kernel's own number
		ticks += n
	}
	return ticks
}
