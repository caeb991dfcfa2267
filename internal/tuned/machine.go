package tuned

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	goruntime "runtime"
	"strings"
)

// A Machine is the machine for which measurements hold.
type Machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"` // all of them, even those that this process may not run on
	Arch  string `json:"arch"`
}

// cpuInfo is the kernel's description of processors.
const cpuInfo = "/proc/cpuinfo"

// Here returns the machine of this process.
func Here() (Machine, error) {
	f, err := os.Open(cpuInfo)
	if err != nil {
		return Machine{}, err
	}
	defer f.Close()
	return parseMachine(f)
}

// parseMachine reads the kernel's description of processors.
func parseMachine(r io.Reader) (Machine, error) {
	m := Machine{Arch: goruntime.GOARCH}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxBytes)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch strings.TrimSpace(name) {
		case "processor":
			m.Cores++
		case "model name":
			m.CPU = strings.TrimSpace(value)
		}
	}
	return m, lines.Err()
}

// String describes a machine in a few words.
func (m Machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = "unnamed CPU"
	}
	return fmt.Sprintf("%s, %d cores, %s", cpu, m.Cores, m.Arch)
}

// key returns the name of the machine's file.
func (m Machine) key() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %d %q", m.CPU, m.Cores, m.Arch)))[:16]
}
