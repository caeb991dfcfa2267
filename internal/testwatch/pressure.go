package testwatch

import (
	"os"
	goruntime "runtime"
	"strconv"
	"strings"
)

// mostPressure bounds how much longer a test waits on a busy machine. So a test that hangs ends
// before go test ends its package.
const mostPressure = 20

// pressure returns how many threads want to run for each core of this machine, 1 at
// least.
func pressure() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	return pressureOf(string(text), goruntime.NumCPU())
}

// pressureOf computes the pressure from the kernel's line, such as "4.2 3.1 2.0 7/311 1733":
// averages of one, five and fifteen minutes, threads that want to run now, all threads,
// and the last process.
func pressureOf(line string, cores int) float64 {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return 1
	}
	average, _ := strconv.ParseFloat(fields[0], 64) // the kernel's own numbers
	running, _, _ := strings.Cut(fields[3], "/")
	now, _ := strconv.ParseFloat(running, 64)
	return min(max(1, average/float64(cores), now/float64(cores)), mostPressure)
}
