package runtime

import (
	"cmp"
	"fmt"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/identity"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/ibv"
	"github.com/gopgas/gopgas/verbs/shm"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// makeWide makes a provider between processes.
func (o *options) makeWide(name string, env bootstrap.Env) (driver.Provider, error) {
	switch name {
	case "shm":
		return shm.New(shm.Config{}), nil
	case "ibv":
		return o.ibv(), nil
	}
	return o.tcp(env)
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
