package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/ibv"
	"github.com/gopgas/gopgas/verbs/loop"
)

// localWire connects the ranks of one process.
type localWire = loop.Provider

func newLocalWire() *localWire { return loop.New() }

// rdmaSettings choose the RDMA device and its settings.
type rdmaSettings = ibv.Config

func parseRDMA(list string) (rdmaSettings, error) { return ibv.ParseConfig(list) }

// errNotEncrypted refuses TLS with a provider that cannot encrypt.
var errNotEncrypted = errors.New("provider ibv does not encrypt, and the job has several hosts: with TLS choose provider tcp or auto, or leave TLS out (grun --tls, " +
	bootstrap.EnvTLS + ", runtime.WithTLS)")

// auto stands for the list of providers that [options.automatic] returns.
const auto = "auto"

// providerNames are the names that a list of providers may have.
var providerNames = [...]string{"shm", "tcp", "ibv", "loop"}

// ParseProviders returns the names of a list of providers, such as "shm,ibv", or "auto"
// alone. Kind: local.
func ParseProviders(list string) ([]string, error) {
	names := strings.Split(list, ",")
	if list == auto {
		return names, nil
	}
	for i, name := range names {
		if !slices.Contains(providerNames[:], name) || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("provider %q; choose auto, shm, tcp or ibv, or a list in order of preference, such as shm,ibv,tcp", list)
		}
	}
	return names, nil
}

// wiring lists a rank's providers and the kind of its heap.
type wiring struct {
	providers []driver.Provider // in order of preference
	shared    bool              // the heap is a memfd
}

// wire opens no device. It makes the providers of the option's list. local connects the
// ranks of this process; env locates this rank in its job.
func (o *options) wire(local *localWire, env bootstrap.Env) (wiring, error) {
	names, err := ParseProviders(o.provider)
	if err != nil {
		return wiring{}, err
	}
	if o.provider == auto {
		names = o.automatic(local, env)
	}
	if slices.Contains(names, "ibv") && o.tls && !o.oneHost(env) {
		return wiring{}, errNotEncrypted
	}
	w := wiring{shared: local == nil || slices.Contains(names, "shm")}
	for _, name := range names {
		p, err := o.make(name, local, env)
		if err != nil {
			return w, err
		}
		if o.wrap != nil {
			p = o.wrap(p)
		}
		w.providers = append(w.providers, p)
	}
	return w, nil
}

// automatic returns the list of auto. Mapped memory is first. Where ranks are on several
// hosts, RDMA devices are next and tcp is last. Devices do not encrypt, so TLS leaves them out. So
// do atomics of devices, which no other provider may join.
func (o *options) automatic(local *localWire, env bootstrap.Env) []string {
	switch {
	case local != nil && o.oneHost(env):
		return []string{"loop"}
	case local != nil:
		return []string{"loop", "tcp"}
	case o.oneHost(env):
		return []string{"shm"}
	case o.tls || o.atomics == "nic":
		return []string{"shm", "tcp"}
	}
	return []string{"shm", "ibv", "tcp"}
}

// make makes the provider of a name.
func (o *options) make(name string, local *localWire, env bootstrap.Env) (driver.Provider, error) {
	switch {
	case name != "loop":
		return o.makeWide(name, env)
	case local == nil:
		return nil, fmt.Errorf("provider loop carries ranks of one process: use RunLocal, or shm between processes")
	}
	return local, nil
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
