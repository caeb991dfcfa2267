//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/testjob"
)

// envGPU has the tests of this file run, on this host's GPU and NVIDIA's library.
const envGPU = "GOPGAS_GPU"

// openDriversFiles has the driver open the descriptors that it keeps until the process ends.
func openDriversFiles() {
	if os.Getenv(envGPU) != "1" {
		return
	}
	if g, err := Open(0); err == nil {
		_ = g.Close()
	}
}

func needGPU(t testing.TB) *GPU {
	t.Helper()
	if os.Getenv(envGPU) != "1" {
		t.Skip("needs a GPU of NVIDIA: make gpu, or set " + envGPU + "=1")
	}
	g, err := Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

func take(t testing.TB, g *GPU, n int) *Buffer {
	t.Helper()
	b, err := g.Allocate(n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Free()) })
	return b
}

func TestGPUIsADeviceOfTheHost(t *testing.T) {
	about := needGPU(t).About()
	t.Logf("%+v", about)
	require.Equal(t, device.GPU, about.Kind)
	require.Greater(t, about.Size, 1<<30)
	class, err := os.ReadFile(filepath.Join("/sys/bus/pci/devices", about.Device, "class"))
	require.NoError(t, err, "the address of the GPU leads to a PCI device")
	require.Contains(t, string(class), "0x03", "which is a display controller")
}

// Stores, copies and loads of random ranges do on the GPU what they do on a slice.
func TestGPUKeepsRandomRanges(t *testing.T) {
	const n = 3 * granule
	g := needGPU(t)
	source := rand.NewChaCha8([32]byte{1})
	rnd := rand.New(source)
	var buffers [2]*Buffer
	var model [2][]byte
	for i := range buffers {
		buffers[i], model[i] = take(t, g, n), make([]byte, n)
		require.NoError(t, buffers[i].Store(0, model[i]))
	}
	for range 2000 {
		length := 1 << rnd.IntN(21)
		length += rnd.IntN(length)
		at, from := rnd.IntN(n-length+1), rnd.IntN(n-length+1)
		to := rnd.IntN(2)
		switch rnd.IntN(3) {
		case 0:
			data := make([]byte, length)
			_, _ = source.Read(data)
			require.NoError(t, buffers[to].Store(at, data))
			copy(model[to][at:], data)
		case 1:
			other := 1 - to
			require.NoError(t, buffers[to].Copy(at, buffers[other], from, length))
			copy(model[to][at:at+length], model[other][from:])
		case 2:
			got := make([]byte, length)
			require.NoError(t, buffers[to].Load(at, got))
			require.True(t, bytes.Equal(model[to][at:at+length], got), "%d bytes at %d of buffer %d", length, at, to)
		}
	}
	for i, b := range buffers {
		got := make([]byte, n)
		require.NoError(t, b.Load(0, got))
		require.True(t, bytes.Equal(model[i], got), "buffer %d", i)
	}
}

func TestGPUSaysWhatABufferIs(t *testing.T) {
	g := needGPU(t)
	attributes, err := take(t, g, 1).Attributes()
	require.NoError(t, err)
	require.Equal(t, Attributes{Device: true, Ordinal: 0, SyncMemops: true}, attributes)
}

func TestGPURefusesWithTypedErrors(t *testing.T) {
	g := needGPU(t)
	_, err := g.Allocate(g.About().Size + granule)
	require.ErrorIs(t, err, device.ErrFull)
	t.Log(err)
	refused := new(Error)
	_, err = Open(1000)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, Error{"cuDeviceGet", 101, "CUDA_ERROR_INVALID_DEVICE"}, *refused)
	h, err := take(t, g, 1).Handle()
	require.NoError(t, err)
	_, err = g.Import(h) // its own
	require.ErrorAs(t, err, &refused)
	t.Log(err)
	for i := range h[:64] {
		h[i] = ^h[i]
	}
	_, err = g.Import(h)
	require.ErrorAs(t, err, &refused)
	t.Log(err)
}

// The driver exports a buffer, or says that it cannot. CPUs may map the dma-buf or not, and OpenDescriptor knows.
func TestGPUExportsADMABuf(t *testing.T) {
	b := take(t, needGPU(t), granule)
	require.NoError(t, b.Store(0, bytes.Repeat([]byte{'x'}, granule)))
	file, err := b.DMABuf()
	if err != nil {
		require.ErrorIs(t, err, ErrUnsupported)
		t.Log(err)
		return
	}
	defer file.Close()
	name, err := os.Readlink(filepath.Join("/proc/self/fd", strconv.Itoa(int(file.Fd()))))
	require.NoError(t, err)
	t.Log("exported as", name)
	require.Contains(t, name, "dmabuf")
	m, err := device.OpenDescriptor(file)
	if err != nil {
		require.ErrorIs(t, err, device.ErrUnmappable)
		t.Log(err)
		return
	}
	t.Logf("CPUs map it: %+v", m.About())
	p, err := m.Take(0, granule)
	require.NoError(t, err)
	require.Equal(t, byte('x'), p.Bytes()[granule-1])
	require.NoError(t, p.Free())
	require.NoError(t, m.Close())
}

func TestGPUCopiesBetweenRanks(t *testing.T) {
	needGPU(t)
	for _, j := range []testjob.Job{{Ranks: 2, Provider: "shm"}, {Ranks: 8, Provider: "shm"}, {Ranks: 2, Provider: "tcp"}} {
		for _, body := range []string{"copy", "stage"} {
			t.Run(fmt.Sprintf("%s/%s/%d", body, j.Provider, j.Ranks), func(t *testing.T) { j.Run(t, body) })
		}
	}
}

func TestGPUKeepsMemoryOfADeadRankWhileItIsImported(t *testing.T) {
	needGPU(t)
	for range 20 {
		needMemoryOfTheDead(t, testjob.Job{Ranks: 2, Provider: "shm"})
	}
}

func TestGPUServesManyGoroutines(t *testing.T) { useFromGoroutines(t, needGPU(t)) }

func TestGPURegistersMemoryOfTheHost(t *testing.T) { useRegistered(t, needGPU(t)) }
