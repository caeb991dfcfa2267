package testjob

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// Main is a package's TestMain. In a process that Run started it runs one of
// bodies and exits. Otherwise it runs the tests and fails if they left
// goroutines, descriptors or mappings behind.
func Main(m *testing.M, bodies map[string]Body) {
	guardianMain()
	if name := os.Getenv(envBody); name != "" {
		os.Exit(runBody(name, bodies))
	}
	startNetpoller()
	testwatch.Overlap()
	before := openFiles()
	code := m.Run()
	if code == 0 {
		code = report(leaks(before))
	}
	os.Exit(code)
}

// startNetpoller has the Go runtime open the descriptors that it never closes.
func startNetpoller() {
	if r, w, err := os.Pipe(); err == nil {
		_, _ = r.Close(), w.Close()
	}
}

// leaks returns the goroutines, descriptors and mappings that tests have left, since before.
func leaks(before map[string]string) (found []string) {
	if err := testwatch.Leaks(); err != nil {
		found = append(found, err.Error())
	}
	for fd, name := range openFiles() {
		if _, ok := before[fd]; !ok {
			found = append(found, "descriptor "+fd+" left open: "+name)
		}
	}
	return append(found, heapMappings()...)
}

// openFiles returns the names of this process's open descriptors.
func openFiles() map[string]string {
	files := map[string]string{}
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return files
	}
	for _, entry := range dir {
		// The directory's own descriptor is closed by now and has no name.
		if name, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil {
			files[entry.Name()] = name
		}
	}
	return files
}

// heapMappings lists the memfds that this process still maps.
func heapMappings() (found []string) {
	file, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.Contains(lines.Text(), "/memfd:gopgas") {
			found = append(found, "mapping left: "+lines.Text())
		}
	}
	return found
}

// report prints what a test has left behind, and returns an exit code that is not 0 if there is
// something.
func report(found []string) (code int) {
	for _, leak := range found {
		fmt.Fprintln(os.Stderr, "leak:", leak)
		code = 1
	}
	return code
}
