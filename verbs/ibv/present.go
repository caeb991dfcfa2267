package ibv

import (
	"os"
	"slices"
)

// sysClass is the directory in which the kernel lists its RDMA devices.
const sysClass = "/sys/class/infiniband"

// Present names the RDMA devices of the kernel, even if this program was built
// without the tag. It is local.
func Present() []string { return present(sysClass) }

// present returns the names of the devices in a folder of sysfs, sorted, without a call of
// libibverbs.
func present(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // a kernel without RDMA
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return names
}
