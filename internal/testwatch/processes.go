package testwatch

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// Processes counts the starts, the ends and the seconds of CPU time of processes whose steps a test
// cannot read. A process that waits in vain computes less than one second within Patience. The
// function tells reports whether an environment belongs to one of them; its entries end with zero
// bytes.
func Processes(tells func(environ []byte) bool) (steps func() uint64) {
	return func() (n uint64) {
		dirs, _ := os.ReadDir("/proc")
		var ticks uint64
		for _, dir := range dirs {
			pid, err := strconv.ParseUint(dir.Name(), 10, 32)
			if err != nil {
				continue
			}
			if env, err := os.ReadFile("/proc/" + dir.Name() + "/environ"); err == nil && tells(env) {
				n += pid << 32
				ticks += computed(dir.Name())
			}
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
