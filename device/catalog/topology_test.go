package catalog_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/device/catalog"
)

// Devices of testdata/switch.txt, which an emulated machine printed: two disks below one switch, one of
// them with memory, a disk below another root port, and a device with memory beside the ports.
const (
	diskWithMemory = "0000:03:00.0"
	diskBeside     = "0000:04:00.0"
	diskElsewhere  = "0000:05:00.0"
	memoryAtRoot   = "0000:00:10.0"
	portOfDisk     = "0000:02:00.0"
)

// recorded makes the files of a recorded machine.
func recorded(t testing.TB) catalog.Topology {
	text, err := os.ReadFile("testdata/switch.txt")
	require.NoError(t, err)
	root := t.TempDir()
	write := func(name string, content []byte) {
		name = filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, content, 0o644))
	}
	bus := filepath.Join(root, "sys/bus/pci/devices")
	require.NoError(t, os.MkdirAll(bus, 0o755))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "cpu" {
			write("proc/cpuinfo", fmt.Appendf(nil, "vendor_id\t: %s\ncpu family\t: %s\n", f[1], f[2]))
			continue
		}
		config, err := hex.DecodeString(f[7])
		require.NoError(t, err)
		write(f[1]+"/config", append(config, make([]byte, 4096-len(config))...))
		write(f[1]+"/numa_node", []byte(f[3]+"\n"))
		require.NoError(t, os.Symlink("../../.."+strings.TrimPrefix(f[1], "/sys"), filepath.Join(bus, filepath.Base(f[1]))))
	}
	return catalog.Topology{Root: root}
}

func runOn(t testing.TB, topo catalog.Topology, vendor string, family int) {
	require.NoError(t, os.WriteFile(filepath.Join(topo.Root, "proc/cpuinfo"), fmt.Appendf(nil, "vendor_id\t: %s\ncpu family\t: %d\n", vendor, family), 0o644))
}

// redirect gives a bridge, whose one extended capability is for errors, that of ACS with redirection.
func redirect(t testing.TB, topo catalog.Topology, bridge string) {
	file := filepath.Join(topo.Root, "sys/bus/pci/devices", bridge, "config")
	config, err := os.ReadFile(file)
	require.NoError(t, err)
	const first, acs = 0x100, 0x148
	require.Equal(t, uint32(0x00020001), binary.LittleEndian.Uint32(config[first:]), "version, kind and no next one")
	binary.LittleEndian.PutUint32(config[first:], 0x00020001|acs<<20)
	binary.LittleEndian.PutUint32(config[acs:], 0x0001000d)
	require.NoError(t, os.WriteFile(file, config, 0o644))
	runOff(t, topo)
	config[acs+6] |= 0x0c
	require.NoError(t, os.WriteFile(file, config, 0o644))
}

// runOff checks that the capability alone redirects nothing.
func runOff(t testing.TB, topo catalog.Topology) {
	_, way, err := topo.Distance(diskWithMemory, diskBeside)
	require.NoError(t, err)
	require.Equal(t, catalog.Switch, way)
}

// On the emulated machine the kernel passed and refused transfers of these disks in the same way.
func TestDistancesOfARecordedMachineAreThoseOfTheKernel(t *testing.T) {
	type want struct {
		client string
		steps  int
		way    catalog.Way
	}
	for _, c := range []struct {
		name     string
		family   int
		redirect bool
		from     string
		want     []want
	}{
		{"old processor", 15, false, diskWithMemory, []want{{diskWithMemory, 0, catalog.Itself}, {diskBeside, 4, catalog.Switch}, {diskElsewhere, 6, catalog.Unknown}}},
		{"Zen", 23, false, diskWithMemory, []want{{diskWithMemory, 0, catalog.Itself}, {diskBeside, 4, catalog.Switch}, {diskElsewhere, 6, catalog.HostBridge}}},
		{"old processor, redirected", 15, true, diskWithMemory, []want{{diskWithMemory, 0, catalog.Itself}, {diskBeside, 4, catalog.Unknown}, {diskElsewhere, 6, catalog.Unknown}}},
		{"Zen, redirected", 23, true, diskWithMemory, []want{{diskWithMemory, 0, catalog.Itself}, {diskBeside, 4, catalog.HostBridge}, {diskElsewhere, 6, catalog.HostBridge}}},
		{"memory at the root, Zen", 23, false, memoryAtRoot, []want{{diskElsewhere, 3, catalog.HostBridge}, {diskBeside, 5, catalog.HostBridge}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			topo := recorded(t)
			runOn(t, topo, "AuthenticAMD", c.family)
			if c.redirect {
				redirect(t, topo, portOfDisk)
			}
			for _, w := range c.want {
				steps, way, err := topo.Distance(c.from, w.client)
				require.NoError(t, err)
				require.Equal(t, w.steps, steps, w.client)
				require.Equal(t, w.way, way, w.client)
				back, way, err := topo.Distance(w.client, c.from)
				require.NoError(t, err)
				require.Equal(t, steps, back)
				require.Equal(t, w.way, way)
			}
		})
	}
}

func TestKnownRootComplexesPassTransfersOn(t *testing.T) {
	topo := recorded(t)
	runOn(t, topo, "GenuineIntel", 6)
	file := filepath.Join(topo.Root, "sys/devices/pci0000:00/0000:00:00.0/config")
	config, err := os.ReadFile(file)
	require.NoError(t, err)
	for id, want := range map[uint16]catalog.Way{0x29c0: catalog.Unknown, 0x3c00: catalog.HostBridge, 0x2020: catalog.HostBridge} {
		config[2], config[3] = byte(id), byte(id>>8)
		require.NoError(t, os.WriteFile(file, config, 0o644))
		_, way, err := topo.Distance(diskWithMemory, diskElsewhere)
		require.NoError(t, err)
		require.Equal(t, want, way, "%#x", id)
	}
}

func TestDeviceThatIsNotThereIsAnError(t *testing.T) {
	topo := recorded(t)
	_, _, err := topo.Distance(diskBeside, "0000:99:00.0")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, -1, topo.Node("0000:99:00.0"))
	// A user without root's rights sees 64 bytes.
	require.NoError(t, os.WriteFile(filepath.Join(topo.Root, "sys/bus/pci/devices", portOfDisk, "config"), make([]byte, 64), 0o644))
	_, way, err := topo.Distance(diskWithMemory, diskBeside)
	require.NoError(t, err)
	require.Equal(t, catalog.Switch, way)
}
