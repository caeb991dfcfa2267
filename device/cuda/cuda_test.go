//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/device"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestMain(m *testing.M) {
	openDriversFiles()
	testjob.Main(m, map[string]testjob.Body{"copy": copyBetweenRanks, "figures": figures, "refuse": refusedImports, "orphan": copyToTheDead, "stage": stageInWindow})
}

// fake builds a library whose GPU's memory lies in memfds, and returns its folder.
func fake(t *testing.T, flags ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler for the library that stands for the driver's")
	}
	folder := t.TempDir()
	out, err := exec.CommandContext(t.Context(), compiler,
		append(flags, "-Wall", "-shared", "-fPIC", "-o", filepath.Join(folder, soname), "testdata/fake.c", "-lpthread")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return folder
}

// loadFake returns the library, and a function that has a call fail.
func loadFake(t *testing.T, flags ...string) (l *library, fail func(call string, code int32)) {
	path := filepath.Join(fake(t, flags...), soname)
	l, err := load(path)
	require.NoError(t, err)
	fail, err = failing(path)
	require.NoError(t, err)
	return l, fail
}

// failing returns the function by which a call of the loaded library fails.
func failing(path string) (fail func(call string, code int32), err error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW)
	if err == nil {
		purego.RegisterLibFunc(&fail, handle, "fake_fail")
	}
	return fail, err
}

func TestOpenWithoutTheLibraryNamesTheRemedy(t *testing.T) {
	_, err := load("libgopgas-has-no-such.so.1")
	require.ErrorIs(t, err, ErrAbsent)
	require.ErrorContains(t, err, "libcuda1")
	if _, err := Open(0); err != nil { // this host may have a GPU
		var refused *Error
		require.True(t, errors.Is(err, ErrAbsent) || errors.As(err, &refused), "%v", err)
	}
}

func TestOldDriversAreToldApart(t *testing.T) {
	_, err := load(filepath.Join(fake(t, "-DBROKEN"), soname))
	require.ErrorIs(t, err, ErrAbsent)
	require.ErrorContains(t, err, "cuMemcpyHtoD_v2")
	require.ErrorContains(t, err, "newer driver")
	l, _ := loadFake(t, "-DOLD")
	g, err := l.open(0)
	require.NoError(t, err)
	b, err := g.Allocate(1)
	require.NoError(t, err)
	_, err = b.DMABuf()
	require.ErrorIs(t, err, ErrUnsupported)
	require.NoError(t, b.Free())
	require.NoError(t, g.Close())
}

func TestBuffersKeepWhatWasStoredAndCopied(t *testing.T) {
	l, _ := loadFake(t)
	g, err := l.open(0)
	require.NoError(t, err)
	require.Equal(t, "0000:3b:00.0", g.About().Device)
	require.Equal(t, 64<<20, g.About().Size)
	a, err := g.Allocate(5)
	require.NoError(t, err)
	require.Equal(t, granule, a.Size())
	b, err := g.Allocate(granule + 1)
	require.NoError(t, err)
	require.Equal(t, 2*granule, b.Size())
	attributes, err := a.Attributes()
	require.NoError(t, err)
	require.Equal(t, Attributes{Device: true, Ordinal: 0, SyncMemops: true}, attributes)
	require.NoError(t, a.Store(4096, []byte("device to device")))
	require.NoError(t, b.Copy(2*granule-16, a, 4096, 16))
	got := make([]byte, 16)
	require.NoError(t, b.Load(2*granule-16, got))
	require.Equal(t, "device to device", string(got))
	file, err := b.DMABuf()
	require.NoError(t, err)
	m, err := device.OpenDescriptor(file) // as another device imports it
	require.NoError(t, err)
	require.NoError(t, file.Close())
	p, err := m.Take(0, 2*granule)
	require.NoError(t, err)
	require.Equal(t, "device to device", string(p.Bytes()[2*granule-16:]))
	require.NoError(t, p.Free())
	require.NoError(t, m.Close())
	require.ErrorIs(t, g.Close(), device.ErrTaken)
	for _, buffer := range []*Buffer{a, b} {
		require.NoError(t, buffer.Free())
		require.ErrorIs(t, buffer.Free(), ErrFreed)
		require.ErrorIs(t, buffer.Load(0, got), ErrFreed)
	}
	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	_, err = g.Allocate(1)
	require.ErrorIs(t, err, ErrFreed)
}

func TestWrongArgumentsReachNoDriver(t *testing.T) {
	l, _ := loadFake(t)
	g, err := l.open(0)
	require.NoError(t, err)
	other, err := l.open(0)
	require.NoError(t, err)
	b, err := g.Allocate(1)
	require.NoError(t, err)
	far, err := other.Allocate(1)
	require.NoError(t, err)
	for _, at := range []int{-1, granule, granule + 1} {
		require.ErrorIs(t, b.Store(at, make([]byte, 1)), device.ErrRange)
		require.ErrorIs(t, b.Load(at, make([]byte, 1)), device.ErrRange)
		require.ErrorIs(t, b.Copy(at, b, 0, 1), device.ErrRange)
		require.ErrorIs(t, b.Copy(0, b, at, 1), device.ErrRange)
	}
	require.NoError(t, b.Store(granule, nil))
	require.ErrorIs(t, b.Copy(0, far, 0, 1), device.ErrRange)
	_, err = g.Allocate(0)
	require.ErrorIs(t, err, device.ErrRange)
	_, err = g.Allocate(65 << 20)
	require.ErrorIs(t, err, device.ErrFull)
	_, err = g.Import(Handle{})
	require.ErrorIs(t, err, device.ErrRange)
	h, err := b.Handle()
	require.NoError(t, err)
	_, err = g.Import(h) // its own
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "CUDA_ERROR_INVALID_CONTEXT", refused.Name)
	_, err = l.open(1)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, Error{"cuDeviceGet", 101, "CUDA_ERROR_INVALID_DEVICE"}, *refused)
	require.NoError(t, b.Free())
	require.NoError(t, far.Free())
	require.NoError(t, g.Close())
	require.NoError(t, other.Close())
}

func TestRegisteredMemoryIsTheGPUsUntilItsFree(t *testing.T) {
	l, _ := loadFake(t)
	g, err := l.open(0)
	require.NoError(t, err)
	useRegistered(t, g)
	require.NoError(t, g.Close())
}

func useRegistered(t *testing.T, g *GPU) {
	b, err := g.Allocate(1)
	require.NoError(t, err)
	host := make([]byte, granule)
	registered, err := g.Register(host)
	require.NoError(t, err)
	require.NoError(t, b.Store(0, bytes.Repeat([]byte{'r'}, granule)))
	require.NoError(t, b.Load(0, host))
	require.Equal(t, bytes.Repeat([]byte{'r'}, granule), host)
	require.NoError(t, b.Free())
	refused := new(Error)
	_, err = g.Register(host)
	require.ErrorAs(t, err, &refused)
	require.Equal(t, Error{"cuMemHostRegister_v2", 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"}, *refused)
	require.ErrorIs(t, g.Close(), device.ErrTaken)
	require.NoError(t, registered.Free())
	require.ErrorIs(t, registered.Free(), ErrFreed)
	_, err = g.Register(nil)
	require.ErrorIs(t, err, device.ErrRange)
}

// Each call of the driver fails once. The caller gets its name and code, and all works once it no longer fails.
func TestEachFailingCallIsATypedError(t *testing.T) {
	l, fail := loadFake(t)
	g, err := l.open(0)
	require.NoError(t, err)
	b, err := g.Allocate(1)
	require.NoError(t, err)
	open := func() error {
		g, err := l.open(0)
		if err != nil {
			return err
		}
		return g.Close()
	}
	allocate := func() error {
		b, err := g.Allocate(1)
		if err != nil {
			return err
		}
		return b.Free()
	}
	host := make([]byte, 1)
	register := func() error {
		registered, err := g.Register(host)
		if err != nil {
			return err
		}
		return registered.Free()
	}
	copyWithin := func() error { return b.Copy(0, b, 8, 8) }
	for call, f := range map[string]func() error{
		"cuDeviceGet": open, "cuDeviceGetPCIBusId": open, "cuDeviceTotalMem_v2": open, "cuDevicePrimaryCtxRetain": open,
		"cuCtxSetCurrent": allocate, "cuMemAlloc_v2": allocate, "cuPointerSetAttribute": allocate,
		"cuMemHostRegister_v2":  register,
		"cuPointerGetAttribute": func() error { _, err := b.Attributes(); return err },
		"cuDeviceGetAttribute":  func() error { _, err := b.DMABuf(); return err },
		"cuMemGetHandleForAddressRange": func() error {
			file, err := b.DMABuf()
			if err == nil {
				err = file.Close()
			}
			return err
		},
		"cuIpcGetMemHandle":    func() error { _, err := b.Handle(); return err },
		"cuMemcpyHtoD_v2":      func() error { return b.Store(0, make([]byte, 8)) },
		"cuMemcpyDtoH_v2":      func() error { return b.Load(0, make([]byte, 8)) },
		"cuMemcpyDtoDAsync_v2": copyWithin, "cuStreamSynchronize": copyWithin,
	} {
		fail(call, 719)
		var refused *Error
		require.ErrorAs(t, f(), &refused, call)
		require.Equal(t, Error{call, 719, "CUDA_ERROR_LAUNCH_FAILED"}, *refused)
		fail("", 0)
		if call != "cuDeviceGetAttribute" { // its buffer's file would stay open
			require.NoError(t, f(), call)
		}
	}
	fail("cuMemFree_v2", 12345)
	require.EqualError(t, b.Free(), "cuda: cuMemFree_v2: CUDA_ERROR (12345)")
	fail("cuInit", 100)
	require.EqualError(t, l.check("cuInit", l.init(0)), "cuda: cuInit: CUDA_ERROR_NO_DEVICE (100)")
	fail("cuDevicePrimaryCtxRelease_v2", 4)
	require.NoError(t, b.Free(), "the failed Free left the buffer")
	require.ErrorContains(t, g.Close(), "CUDA_ERROR_DEINITIALIZED")
}

func TestConcurrentCallsFindTheirContext(t *testing.T) {
	l, _ := loadFake(t)
	g, err := l.open(0)
	require.NoError(t, err)
	useFromGoroutines(t, g)
	require.NoError(t, g.Close())
}

// useFromGoroutines has goroutines on any threads use one GPU at the same time.
func useFromGoroutines(t *testing.T, g *GPU) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				b, err := g.Allocate(1)
				if err == nil {
					err = errors.Join(b.Store(i, []byte{byte(i)}), b.Copy(100, b, i, 1))
				}
				got := make([]byte, 1)
				if err == nil {
					err = errors.Join(b.Load(100, got), b.Free())
				}
				if err != nil || got[0] != byte(i) {
					t.Errorf("%d: %v, %v", i, got, err)
				}
			}
		})
	}
	all.Wait()
}

// Two processes each have memory of the GPU; the bytes go from the one's to the other's.
func TestTwoRanksCopyFromDeviceToDevice(t *testing.T) {
	folder := fake(t)
	for _, provider := range []string{"shm", "tcp"} {
		j := testjob.Job{Ranks: 2, Provider: provider, Env: []string{"LD_LIBRARY_PATH=" + folder}}
		j.Run(t, "copy")
		j.Run(t, "refuse")
	}
}

func TestMemoryOfADeadRankStaysWhileItIsImported(t *testing.T) {
	needMemoryOfTheDead(t, testjob.Job{Ranks: 2, Provider: "shm", Env: []string{"LD_LIBRARY_PATH=" + fake(t)}})
}

func needMemoryOfTheDead(t *testing.T, j testjob.Job) {
	out := j.Try(t, "orphan")
	require.Equal(t, 128+int(unix.SIGKILL), out.ExitCode, out.Output)
	require.Contains(t, out.Output, "all copies ended")
}

// A window in the heap is the stage that the program chooses: its owners load and store their GPUs' memory there.
func TestWindowStagesMemoryOfGPUs(t *testing.T) {
	folder := fake(t)
	for _, provider := range []string{"shm", "tcp"} {
		testjob.Job{Ranks: 2, Provider: provider, Env: []string{"LD_LIBRARY_PATH=" + folder}}.Run(t, "stage")
	}
}

func stageInWindow(ctx context.Context, r *testjob.Rank) {
	const half = granule / 2 // of the window: bytes that leave, and bytes that arrive
	g, err := Open(0)
	r.NoError(err)
	mine, err := g.Allocate(granule)
	r.NoError(err)
	stage, err := window.Allocate[byte](ctx, r.World, 2*half, window.WithSlots(1))
	r.NoError(err)
	registered, err := g.Register(stage.Local())
	r.NoError(err)
	r.NoError(mine.Store(0, []byte(strings.Repeat(string(rune('a'+r.Me)), half))))
	for round := range 3 {
		r.NoError(mine.Load(0, stage.Local()[:half]))
		r.NoError(stage.PutNotify(ctx, r.Right(), half, stage.Local()[:half], window.Signal{Slot: 0, Value: uint64(round + 1)}))
		_, _, err = stage.WaitNotify(ctx, window.Until{Slots: []int{0}, Condition: window.AtLeast, Value: uint64(round + 1)})
		r.NoError(err)
		r.NoError(mine.Store(half, stage.Local()[half:]))
		r.NoError(r.World.Barrier(ctx)) // the stage is free
		got := make([]byte, half)
		r.NoError(mine.Load(half, got))
		r.Equal(strings.Repeat(string(rune('a'+(r.Left()+round*(r.N-1))%r.N)), half), string(got))
		r.NoError(mine.Copy(0, mine, half, half)) // it goes on to the next rank
	}
	r.NoError(registered.Free())
	r.NoError(stage.Free(ctx))
	r.NoError(mine.Free())
	r.NoError(g.Close())
}

func copyBetweenRanks(ctx context.Context, r *testjob.Rank) {
	const n = 1000
	g, mine, far := neighbors(ctx, r)
	attributes, err := far.Attributes()
	r.NoError(err)
	r.Equal(Attributes{Device: true, Ordinal: 0, SyncMemops: true}, attributes)
	r.NoError(mine.Store(0, bytes.Repeat([]byte{byte('a' + r.Me)}, n)))
	r.NoError(far.Copy(4096, mine, 0, n))
	r.NoError(far.Store(3*4096, bytes.Repeat([]byte{byte('A' + r.Me)}, n)))
	r.NoError(r.World.Barrier(ctx))
	got := make([]byte, n)
	r.NoError(mine.Load(4096, got))
	r.Equal(bytes.Repeat([]byte{byte('a' + r.Left())}, n), got)
	r.NoError(mine.Load(3*4096, got))
	r.Equal(bytes.Repeat([]byte{byte('A' + r.Left())}, n), got)
	r.NoError(far.Load(0, got))
	r.Equal(bytes.Repeat([]byte{byte('a' + r.Right())}, n), got)
	r.NoError(r.World.Barrier(ctx))
	r.NoError(far.Free())
	r.NoError(r.World.Barrier(ctx)) // imports end ahead of the owner's memory
	r.NoError(mine.Free())
	r.NoError(g.Close())
}

// neighbors gives this rank a buffer and imports that of the next rank.
func neighbors(ctx context.Context, r *testjob.Rank) (g *GPU, mine, far *Buffer) {
	g, err := Open(0)
	r.NoError(err)
	mine, err = g.Allocate(granule)
	r.NoError(err)
	h, err := mine.Handle()
	r.NoError(err)
	handles, err := r.World.Exchange(ctx, h[:])
	r.NoError(err)
	far, err = g.Import(Handle(handles[r.Right()]))
	r.NoError(err)
	return g, mine, far
}

// refusedImports has the driver refuse the begin and the end of an import. Both work behind that.
func refusedImports(ctx context.Context, r *testjob.Rank) {
	fail, err := failing(soname)
	r.NoError(err)
	g, mine, far := neighbors(ctx, r)
	h, err := mine.Handle()
	r.NoError(err)
	handles, err := r.World.Exchange(ctx, h[:])
	r.NoError(err)
	for _, call := range []string{"cuIpcOpenMemHandle_v2", "cuPointerSetAttribute"} {
		fail(call, 205)
		refused := new(Error)
		_, err = g.Import(Handle(handles[r.Right()]))
		r.ErrorAs(err, &refused)
		r.Equal(Error{call, 205, "CUDA_ERROR_MAP_FAILED"}, *refused)
	}
	fail("cuIpcCloseMemHandle", 201)
	refused := new(Error)
	r.ErrorAs(far.Free(), &refused)
	r.Equal("cuIpcCloseMemHandle", refused.Call)
	fail("", 0)
	r.NoError(far.Free())
	r.NoError(r.World.Barrier(ctx)) // imports end ahead of the owner's memory
	r.NoError(mine.Free())
	r.NoError(g.Close())
}

// copyToTheDead has both ranks copy to each other's memory until rank 0 dies. All copies of rank 1 end.
func copyToTheDead(ctx context.Context, r *testjob.Rank) {
	g, mine, far := neighbors(ctx, r)
	r.NoError(mine.Store(0, bytes.Repeat([]byte{byte('a' + r.Me)}, granule)))
	began := time.Now()
	for lives := time.Duration(rand.IntN(30)) * time.Millisecond; r.Job.Context().Err() == nil; {
		r.NoError(far.Copy(granule/2, mine, 0, granule/2))
		if r.Me == 0 && time.Since(began) > lives {
			r.Die()
		}
	}
	r.ErrorIs(context.Cause(r.Job.Context()), runtime.ErrRankDead)
	for range 1000 {
		r.NoError(far.Copy(granule/2, mine, 0, granule/2))
	}
	got := make([]byte, granule/2)
	r.NoError(far.Load(granule/2, got))
	r.Equal(bytes.Repeat([]byte{'b'}, granule/2), got)
	r.NoError(far.Free())
	r.NoError(mine.Free())
	r.NoError(g.Close())
	fmt.Println("all copies ended")
}

// A program has the loader of dynamic libraries only if it imports this package.
func TestProgramsWithoutThisPackageStayStatic(t *testing.T) {
	out := filepath.Join(t.TempDir(), "hello")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", out, "../../examples/devmem") // imports device
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	require.False(t, dynamic(t, out))
	self, err := os.Executable()
	require.NoError(t, err)
	require.True(t, dynamic(t, self), "the test can tell")
}

func dynamic(t *testing.T, path string) bool {
	file, err := elf.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return true
		}
	}
	return false
}
