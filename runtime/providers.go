package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/identity"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/ibv"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/tcp"
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

// wiring lists a rank's providers and the kind of its heap.
type wiring struct {
	providers []driver.Provider // in order of preference
	shared    bool              // the heap is a memfd
}

// wire turns the name of a provider into providers. local connects the ranks of this
// process; env locates this rank in its job.
func (o *options) wire(local *localWire, env bootstrap.Env) (wiring, error) {
	w := wiring{shared: true}
	switch o.provider {
	case "loop":
		w.shared = false
		if local == nil {
			return w, fmt.Errorf("provider loop carries ranks of one process: use RunLocal, or shm between processes")
		}
		w.providers = []driver.Provider{local}
	case "shm":
		w.providers = []driver.Provider{shm.New(shm.Config{})}
	case "tcp":
		w.shared = local == nil
		p, err := o.tcp(env)
		if err != nil {
			return w, err
		}
		w.providers = []driver.Provider{p}
	case "ibv":
		if o.tls && !o.oneHost(env) {
			return w, errNotEncrypted
		}
		w.shared = local == nil
		w.providers = []driver.Provider{o.ibv()}
	case "", "auto":
		return o.wireAuto(local, env)
	default:
		return w, fmt.Errorf("unknown provider %q; choose auto, shm, tcp, ibv or loop", o.provider)
	}
	o.wrapAll(w.providers)
	return w, nil
}

// wireAuto takes the nearest provider that reaches all ranks.
func (o *options) wireAuto(local *localWire, env bootstrap.Env) (wiring, error) {
	w := wiring{shared: local == nil}
	if local != nil {
		w.providers = []driver.Provider{local}
	} else {
		w.providers = []driver.Provider{shm.New(shm.Config{})}
	}
	if !o.oneHost(env) {
		p, err := o.tcp(env)
		if err != nil {
			return w, err
		}
		w.providers = append(w.providers, p)
	}
	o.wrapAll(w.providers)
	return w, nil
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

// tcp returns the provider tcp. If all ranks are processes of this host, even with
// names of several hosts, it listens for those only.
func (o *options) tcp(env bootstrap.Env) (driver.Provider, error) {
	listen := o.iface
	if listen == "" && env.LocalSize == env.Size {
		listen = "127.0.0.1"
	}
	cfg := tcp.Config{Listen: listen, PeerTimeout: o.peerTimeout}
	if o.tls {
		var err error
		if cfg.TLS, err = identity.Config(env.Secret, identity.Data); err != nil {
			return nil, err
		}
	}
	return tcp.New(cfg), nil
}

func (o *options) ibv() driver.Provider {
	cfg := o.rdma
	cfg.PeerTimeout = o.peerTimeout
	return ibv.New(cfg)
}

func (o *options) wrapAll(providers []driver.Provider) {
	if o.wrap == nil {
		return
	}
	for i, p := range providers {
		providers[i] = o.wrap(p)
	}
}
