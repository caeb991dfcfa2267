//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/gopgas/gopgas/device"
)

// A Registration is memory of the host that the GPU reads and writes by itself. Its method may be called from any
// goroutine.
type Registration struct {
	gpu  *GPU
	host []byte
}

// Register has the driver lock memory of the host, such as Window.Local of the window that is the stage. [Buffer.Load] and
// [Buffer.Store] then move its bytes without a copy by the CPU, three to four times as fast from 1 MiB on
// (docs/memory-kinds.md). Register the memory once, and free the registration ahead of the memory. Bytes that are registered
// already are an [*Error]. Kind: local.
func (g *GPU) Register(host []byte) (*Registration, error) {
	if len(host) == 0 {
		return nil, fmt.Errorf("cuda: Register of no bytes: %w", device.ErrRange)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	r := &Registration{g, host}
	if err := g.call("cuMemHostRegister_v2", func() int32 { return g.lib.register(&host[0], uintptr(len(host)), 0) }); err != nil {
		return nil, err
	}
	g.live[r] = struct{}{}
	return r, nil
}

// Free ends the registration. A second call returns [ErrFreed]. Kind: local.
func (r *Registration) Free() error {
	g := r.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, live := g.live[r]; !live {
		return fmt.Errorf("cuda: Free: %w", ErrFreed)
	}
	if err := g.call("cuMemHostUnregister", func() int32 { return g.lib.unregister(&r.host[0]) }); err != nil {
		return err
	}
	delete(g.live, r)
	return nil
}
