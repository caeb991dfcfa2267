package ibv

import (
	"os"
	"slices"
)

// sysClass is where the kernel lists its RDMA devices.
const sysClass = "/sys/class/infiniband"

// Present names the RDMA devices that the kernel knows, whether or not this
// program was built to use them. It is local.
func Present() []string { return present(sysClass) }

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
