//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// checkCores compares the cores that this process may use with those of the machine.
func checkCores() finding {
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		return failing("sched_getaffinity", err, "")
	}
	online, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*")
	return judgeCores(mask.Count(), max(len(online), mask.Count()), goruntime.GOMAXPROCS(0))
}

// judgeCores compares the cores of the affinity mask, the machine's cores, and
// the cores that Go uses within its control groups.
func judgeCores(allowed, total, procs int) finding {
	text := fmt.Sprintf("%d of %d in the affinity mask", allowed, total)
	switch {
	case procs < allowed && os.Getenv("GOMAXPROCS") == "":
		return finding{warn, fmt.Sprintf("%s, but the control group allows the time of about %d", text, procs),
			"raise the container's CPU limit: a throttled rank stalls all ranks"}
	case allowed < 2:
		return finding{warn, text, "give grun at least two cores (taskset, container limits): with fewer, one-sided transfers do not overlap with computation"}
	case allowed < total:
		return finding{warn, text, "start grun outside taskset or the cpuset to use all cores"}
	}
	return finding{verdict: ok, text: text}
}

// checkLoopback finds out whether the loopback interface carries a connection, and how fast.
func checkLoopback() finding {
	const mend = "bring the loopback interface up (ip link set lo up): ranks meet their launcher there"
	took, err := pingLoopback()
	if err != nil {
		return failing("127.0.0.1", err, mend)
	}
	return finding{verdict: ok, text: fmt.Sprintf("answers, %v there and back", took.Round(time.Microsecond))}
}

// pingLoopback sends a byte to itself and back several times, and returns the
// shortest time.
func pingLoopback() (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		if conn, err := l.Accept(); err == nil {
			io.Copy(conn, conn) //nolint:errcheck // the sending side sees the error
			conn.Close()
		}
	}()
	conn, err := net.DialTimeout("tcp", l.Addr().String(), time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second)) //nolint:errcheck // open
	best := time.Hour
	for range 50 {
		begin := time.Now()
		if _, err := conn.Write([]byte{1}); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return 0, err
		}
		best = min(best, time.Since(begin))
	}
	return best, nil
}

// checkClock finds out which clock the kernel reads.
func checkClock() finding {
	b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return finding{warn, "unknown: " + err.Error(), "mount /sys"}
	}
	return judgeClock(strings.TrimSpace(string(b)))
}

// judgeClock judges a clock by its name.
func judgeClock(name string) finding {
	switch name {
	case "tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter":
		return finding{verdict: ok, text: name + ", read without a system call"}
	}
	return finding{warn, name + ", slow to read", "boot with clocksource=tsc where the hardware allows; benchmarks suffer, transfers do not"}
}
