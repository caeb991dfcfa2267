package catalog

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Way says how transfers between two devices go. Later ways are longer.
type Way uint8

const (
	// Anyhow is the zero Way: of no transfer, and as Rules.Farthest no bound.
	Anyhow Way = iota
	// Itself: one device.
	Itself
	// Switch: below a common bridge, which passes the transfer on.
	Switch
	// HostBridge: through a root complex that is known to pass it on, or to memory of the host.
	HostBridge
	// Unknown: through a root complex that may not pass it on. The kernel refuses such transfers.
	Unknown
	// Network: to another host.
	Network
)

var wayNames = [...]string{"anyhow", "itself", "switch", "host bridge", "unknown root complex", "network"}

// String returns the way in words.
func (w Way) String() string {
	if int(w) < len(wayNames) {
		return wayNames[w]
	}
	return fmt.Sprintf("way %d", uint8(w))
}

// Topology reads where a host's PCI devices are. Root is the folder that has sys and proc, "/" if it is
// empty. Distances and ways are those of the kernel's pci_p2pdma_distance. Only root sees whether
// bridges redirect transfers (ACS): without its rights, a Switch may be a HostBridge or Unknown.
type Topology struct{ Root string }

// path returns the path of a file below Root.
func (t Topology) path(parts ...string) string {
	root := t.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(append([]string{root}, parts...)...)
}

// above lists a device and the bridges above it, the device first, and its host bridge, such as
// pci0000:00.
func (t Topology) above(device string) (chain []string, host string, err error) {
	folder, err := filepath.EvalSymlinks(t.path("sys/bus/pci/devices", device))
	if err != nil {
		return nil, "", fmt.Errorf("catalog: PCI device %s: %w", device, err)
	}
	for part := range strings.SplitSeq(filepath.ToSlash(folder), "/") {
		if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") {
			host, chain = part, nil
		} else if host != "" {
			chain = append(chain, part)
		}
	}
	slices.Reverse(chain)
	return chain, host, nil
}

// Distance returns the number of steps between two PCI devices of this host, by address, and the
// way. Kind: local.
func (t Topology) Distance(provider, client string) (steps int, way Way, err error) {
	a, hostA, err := t.above(provider)
	if err != nil {
		return 0, Anyhow, err
	}
	b, hostB, err := t.above(client)
	if err != nil {
		return 0, Anyhow, err
	}
	if a[0] == b[0] {
		return 0, Itself, nil
	}
	for i, bridge := range a {
		j := slices.Index(b, bridge)
		if j < 0 {
			continue
		}
		// As the kernel does, the common bridge counts, too.
		if slices.ContainsFunc(a[:i+1], t.redirects) || slices.ContainsFunc(b[:j], t.redirects) {
			return i + j, t.throughRoot(hostA, hostB), nil
		}
		return i + j, Switch, nil
	}
	return len(a) + len(b), t.throughRoot(hostA, hostB), nil
}

// throughRoot says whether root complexes pass on what devices say to each other: those of AMD since
// Zen, and those of Intel in the kernel's list.
func (t Topology) throughRoot(a, b string) Way {
	if t.zen() || a == b && t.passes(a, true) || t.passes(a, false) && t.passes(b, false) {
		return HostBridge
	}
	return Unknown
}

// zen reports whether the processor is an AMD Zen, whose root complexes pass on what devices say to
// each other.
func (t Topology) zen() bool {
	text, err := os.ReadFile(t.path("proc/cpuinfo"))
	if err != nil {
		return false
	}
	amd, family := false, 0
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "vendor_id":
			amd = value == "AuthenticAMD"
		case "cpu family":
			family, _ = strconv.Atoi(value)
		}
	}
	return amd && family >= 0x17
}

// passing has the device numbers of Intel's host bridges whose root complexes pass transfers on. The
// value is true if they do so only among devices below one of them.
var passing = map[uint16]bool{0x3c00: true, 0x3c01: true, 0x2f00: true, 0x2f01: true,
	0x2030: false, 0x2031: false, 0x2032: false, 0x2033: false, 0x2020: false, 0x09a2: false}

const intel = 0x8086

// passes reports whether an Intel root complex passes transfers on: with same, those between devices below it.
func (t Topology) passes(host string, same bool) bool {
	config, err := os.ReadFile(t.path("sys/devices", host, strings.TrimPrefix(host, "pci")+":00.0", "config"))
	if err != nil || len(config) < 4 || binary.LittleEndian.Uint16(config) != intel {
		return false
	}
	onlySame, known := passing[binary.LittleEndian.Uint16(config[2:])]
	return known && (same || !onlySame)
}

// Offsets and bits of configuration space (PCI Express 6.0, sections 7.6.3 and 7.7.11).
const (
	extended    = 0x100 // the first extended capability
	acsID       = 0x0d
	acsControl  = 6    // behind its header
	acsRedirect = 0x2c // request redirect, completion redirect, egress control
)

// redirects reports whether a bridge sends transfers between devices below it up to the root complex.
func (t Topology) redirects(device string) bool {
	config, err := os.ReadFile(t.path("sys/bus/pci/devices", device, "config"))
	return err == nil && redirecting(config)
}

// redirecting is redirects for a configuration space.
func redirecting(config []byte) bool {
	for at, seen := extended, 0; at >= extended && at+8 <= len(config) && seen < len(config); seen += 4 {
		header := binary.LittleEndian.Uint32(config[at:])
		if header&0xffff == acsID {
			return binary.LittleEndian.Uint16(config[at+acsControl:])&acsRedirect != 0
		}
		at = int(header >> 20)
	}
	return false
}

// Node returns the NUMA node of a PCI device, -1 if the system does not say. Kind: local.
func (t Topology) Node(device string) int {
	text, err := os.ReadFile(t.path("sys/bus/pci/devices", device, "numa_node"))
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return node
}
