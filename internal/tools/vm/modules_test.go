//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// folderOf makes a kernel's folder of modules, from a map of files to their
// dependencies.
func folderOf(t *testing.T, depends map[string]string, builtin string) string {
	t.Helper()
	folder := t.TempDir()
	write(t, []byte(builtin), folder, "modules.builtin")
	for file, list := range depends {
		object{modinfo: "license=GPL\x00depends=" + list + "\x00name=x\x00"}.write(t, folder, "kernel", file)
	}
	return folder
}

func closureOf(t *testing.T, folder string, names ...string) ([]string, error) {
	t.Helper()
	all, err := scanModules(folder)
	require.NoError(t, err)
	order, err := all.closure(names)
	var out []string
	for _, m := range order {
		out = append(out, m.name)
		require.NotEmpty(t, m.content)
	}
	return out, err
}

func TestEachModuleLoadsBehindAllThatItNeeds(t *testing.T) {
	folder := folderOf(t, map[string]string{
		"drivers/rdma_rxe.ko":     "ib_core,ib_uverbs,udp_tunnel",
		"drivers/ib_uverbs.ko":    "ib_core",
		"drivers/ib_core.ko":      "",
		"net/udp_tunnel.ko":       "",
		"drivers/unasked.ko":      "ib_core",
		"crypto/crc32-generic.ko": "",
	}, "")
	order, err := closureOf(t, folder, "crc32_generic", "rdma_rxe", "ib_core")
	require.NoError(t, err)
	require.Equal(t, []string{"crc32_generic", "ib_core", "ib_uverbs", "udp_tunnel", "rdma_rxe"}, order)
}

func TestModulesThatTheKernelHasBuiltInAreNotLoaded(t *testing.T) {
	folder := folderOf(t, map[string]string{"virtio_pci.ko": "virtio-ring,virtio"}, "kernel/drivers/virtio/virtio.ko\nkernel/virtio-ring.ko\n")
	order, err := closureOf(t, folder, "virtio_pci", "virtio")
	require.NoError(t, err)
	require.Equal(t, []string{"virtio_pci"}, order)
}

func TestErrorNamesAMissingModuleAndTheModuleThatNeedsIt(t *testing.T) {
	folder := folderOf(t, map[string]string{"9p.ko": "netfs"}, "")
	_, err := closureOf(t, folder, "9p")
	require.ErrorContains(t, err, "no module netfs, which 9p needs")
	_, err = closureOf(t, folder, "siw")
	require.ErrorContains(t, err, "no module siw")
}

func TestScanModulesReadsACompressedModule(t *testing.T) {
	folder := folderOf(t, map[string]string{"veth.ko": ""}, "")
	plain := object{modinfo: "depends=veth\x00"}.bytes(t)
	packed := gzipped(t, plain)
	write(t, packed, folder, "net", "rdma_rxe.ko.gz")

	all, err := scanModules(folder)
	require.NoError(t, err)
	order, err := all.closure([]string{"rdma_rxe"})
	require.NoError(t, err)
	require.Len(t, order, 2)
	require.Equal(t, "veth", order[0].name)
	require.Equal(t, plain, order[1].content)
}

func TestDependsOfRefusesOtherFiles(t *testing.T) {
	folder := folderOf(t, nil, "")
	write(t, []byte("text"), folder, "text.ko")
	_, err := closureOf(t, folder, "text")
	require.ErrorContains(t, err, "text.ko")
}
