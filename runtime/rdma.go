package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/ibv"
)

// rdmaSettings choose the RDMA device and its settings.
type rdmaSettings = ibv.Config

func parseRDMA(list string) (rdmaSettings, error) { return ibv.ParseConfig(list) }

// errNotEncrypted refuses TLS with a provider that cannot encrypt.
var errNotEncrypted = errors.New("provider ibv does not encrypt, and the job has several hosts: with TLS choose provider tcp or auto, or leave TLS out (grun --tls, " +
	bootstrap.EnvTLS + ", runtime.WithTLS)")

// ibv returns the provider ibv. Where auto chose it, a rank that may not lock its heap has
// no device: a registration would fail later, in a job that tcp can carry.
func (o *options) ibv() driver.Provider {
	cfg := o.rdma
	cfg.PeerTimeout = o.peerTimeout
	p := ibv.New(cfg)
	if o.provider != auto {
		return p
	}
	heap := uint64(cmp.Or(o.heap, sharedHeap()))
	if most := lockable(); most < heap {
		return unusable{p, fmt.Errorf("%w: this process may lock %d MiB of memory, and its heap has %d: raise ulimit -l", driver.ErrNoDevice, most>>20, heap>>20)}
	}
	return p
}

// lockable returns the number of bytes that this process may lock, as devices do with
// registered memory.
func lockable() uint64 {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if unix.Capget(&header, &caps[0]) == nil && caps[0].Effective&(1<<unix.CAP_IPC_LOCK) != 0 {
		return unix.RLIM_INFINITY
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil {
		return 0
	}
	return limit.Cur
}

// unusable is a provider whose devices this process must not use.
type unusable struct {
	driver.Provider
	cause error
}

func (u unusable) Open(context.Context, string, driver.Options) (driver.Context, error) {
	return nil, u.cause
}

// unusedDevices names, once in a job, the RDMA devices of this host that programs
// without the tag ibverbs cannot use.
func unusedDevices(rank int) string {
	devices := ibv.Present()
	if rank != 0 || ibv.Built || len(devices) == 0 {
		return ""
	}
	return fmt.Sprintf("gopgas: this program cannot use %s: build it with `go build -tags ibverbs`, which needs a C compiler and libibverbs-dev",
		strings.Join(devices, ", "))
}
