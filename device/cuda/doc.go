// Package cuda opens memory of NVIDIA GPUs for transfers between ranks of one host, from device to device: no
// byte passes through memory of the host.
//
//	gpu, err := cuda.Open(0)
//	b, err := gpu.Allocate(64 << 20)
//	handle, err := b.Handle()                  // for the other ranks, such as by Team.Exchange
//	...
//	far, err := gpu.Import(handle)             // at another rank: the same memory
//	err = far.Copy(0, mine, 0, n)              // GPU to GPU
//	err = far.Free()
//
// CPUs cannot load from such memory, so no window lies on it, and device.Bounce changes nothing. Between hosts a window in the
// heap is the stage: [Buffer.Load] into it, put, [Buffer.Store] at the target (docs/memory-kinds.md). [GPU.Register] locks the
// window's memory, so that the GPU reads and writes it itself. [Buffer.DMABuf] is the descriptor by which devices import a buffer, see
// device.OpenDescriptor and driver.KindDMABuf.
//
// The package calls the driver's library, libcuda.so.1, without cgo. It loads the library at [Open], which returns
// [ErrAbsent] on hosts without it. A program that imports this package is linked dynamically, to libc and libdl; programs
// that do not import it stay static.
//
// The tests run against a library that keeps the "GPU's" memory in memfds and checks calls, arguments and errors. On a
// host with a GPU, scripts/gpu.sh runs them against NVIDIA's library.
package cuda
