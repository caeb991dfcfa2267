//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are handles of libibverbs.
type (
	deviceHandle  = *C.struct_ibv_device
	contextHandle = *C.struct_ibv_context
)

// errNoKernelSupport is libibverbs' error on a host without RDMA.
const errNoKernelSupport = unix.ENOSYS

// These limits of the provider hold even where the device grants more.
const (
	maxDepth    = 16 << 10
	maxCQDepth  = 1 << 20
	maxSegments = 16
	maxReads    = 16
)

// hardware is an open device with its protection domain, its completion channel
// and the attributes of device and port.
type hardware struct {
	name    string
	context contextHandle
	pd      *C.struct_ibv_pd
	channel *C.struct_ibv_comp_channel

	attr   C.struct_ibv_device_attr
	port   int
	portAt C.struct_ibv_port_attr
	gid    gidEntry
	mtu    uint8 // enum ibv_mtu
	inline int
}

// openHardware opens the device of a name and makes the objects that all users of the device share.
func openHardware(name string, cfg Config) (*hardware, error) {
	hw := &hardware{name: name}
	var err error
	listErr := eachDevice(func(dev deviceHandle, n string) bool {
		if n == name {
			hw.context, err = C.ibv_open_device(dev)
		}
		return n != name
	})
	if hw.context == nil {
		return nil, fmt.Errorf("%w: ibv: opening %s: %w; may this user read /dev/infiniband?", driver.ErrNoDevice, name, errors.Join(listErr, err))
	}
	if err := hw.setUp(cfg); err != nil {
		return nil, errors.Join(err, hw.close())
	}
	return hw, nil
}

// setUp queries the device and makes its protection domain and completion channel. After an error
// the caller closes hw.
func (hw *hardware) setUp(cfg Config) error {
	if rc, err := C.ibv_query_device(hw.context, &hw.attr); rc != 0 {
		return wrap(err, "querying "+hw.name)
	}
	if err := hw.choosePort(cfg); err != nil {
		return err
	}
	var err error
	if hw.pd, err = C.ibv_alloc_pd(hw.context); hw.pd == nil {
		return wrap(err, "allocating a protection domain")
	}
	if hw.channel, err = C.ibv_create_comp_channel(hw.context); hw.channel == nil {
		return wrap(err, "creating a completion channel")
	}
	return hw.probeInline(cfg.MaxInline)
}

// choosePort takes the first active port, or the configured one, with its MTU and GID. A port of
// InfiniBand needs no GID.
func (hw *hardware) choosePort(cfg Config) error {
	for port := 1; port <= int(hw.attr.phys_port_cnt); port++ {
		if cfg.Port != 0 && cfg.Port != port {
			continue
		}
		if rc := C.gopgas_query_port(hw.context, C.int(port), &hw.portAt); rc != 0 {
			return wrap(unix.Errno(rc), fmt.Sprintf("querying port %d of %s", port, hw.name))
		}
		if hw.portAt.state != C.IBV_PORT_ACTIVE {
			continue
		}
		hw.port, hw.mtu = port, uint8(hw.portAt.active_mtu)
		if cfg.MTU != 0 {
			hw.mtu = min(hw.mtu, mtuCode(cfg.MTU))
		}
		var err error
		if !hw.ethernet() && cfg.GID == "" {
			return nil // peers reach the port by its LID
		}
		hw.gid, err = chooseGID(queryGIDs(hw.context, port), cfg.GID)
		return err
	}
	if cfg.Port != 0 {
		return fmt.Errorf("%w: ibv: port %d of %s is not active", driver.ErrNoDevice, cfg.Port, hw.name)
	}
	return fmt.Errorf("%w: ibv: %s has no active port", driver.ErrNoDevice, hw.name)
}

func (hw *hardware) ethernet() bool { return hw.portAt.link_layer == C.IBV_LINK_LAYER_ETHERNET }

// probeInline finds out how much inline data the device grants. It creates
// queue pairs for that and destroys them.
func (hw *hardware) probeInline(want int) error {
	cq, err := C.gopgas_create_cq(hw.context, 1, 0, nil)
	if cq == nil {
		return wrap(err, "creating a completion queue")
	}
	defer C.ibv_destroy_cq(cq)
	for want = max(want, 0); ; want /= 2 {
		qp, granted, err := hw.createQP(cq, cq, driver.QPConfig{SendDepth: 1, RecvDepth: 1, MaxSegments: hw.segments(), MaxInline: want})
		if err == nil {
			hw.inline = min(granted, want)
			C.ibv_destroy_qp(qp)
			return nil
		}
		if want == 0 {
			return err
		}
	}
}

// createQP makes a queue pair in the device. Its send queue has room for the
// marker, which ends after all requests.
func (hw *hardware) createQP(send, recv *C.struct_ibv_cq, cfg driver.QPConfig) (*C.struct_ibv_qp, int, error) {
	init := C.struct_ibv_qp_init_attr{send_cq: send, recv_cq: recv, qp_type: C.IBV_QPT_RC}
	init.cap.max_send_wr = C.uint32_t(cfg.SendDepth + 1)
	init.cap.max_recv_wr = C.uint32_t(max(1, cfg.RecvDepth))
	init.cap.max_send_sge = C.uint32_t(cfg.MaxSegments)
	init.cap.max_recv_sge = C.uint32_t(cfg.MaxSegments)
	init.cap.max_inline_data = C.uint32_t(cfg.MaxInline)
	qp, err := C.ibv_create_qp(hw.pd, &init)
	if qp == nil {
		return nil, 0, wrap(err, fmt.Sprintf("creating a queue pair of %d and %d requests", cfg.SendDepth, cfg.RecvDepth))
	}
	return qp, int(init.cap.max_inline_data), nil
}

func (hw *hardware) segments() int { return min(int(hw.attr.max_sge), maxSegments) }

// reads returns how many READs and atomics this end takes at once.
func (hw *hardware) reads() uint8 { return uint8(min(int(hw.attr.max_qp_rd_atom), maxReads)) }

// initiatorReads returns how many READs and atomics this end may have outstanding.
func (hw *hardware) initiatorReads() uint8 {
	return uint8(min(int(hw.attr.max_qp_init_rd_atom), maxReads))
}

// info returns the limits of the device, below those of this provider. WRITEs ring no bell at the
// target.
func (hw *hardware) info() driver.DeviceInfo {
	return driver.DeviceInfo{
		Provider: "ibv", Name: hw.name, Detail: hw.detail(),
		MaxQPDepth: min(int(hw.attr.max_qp_wr)-1, maxDepth), MaxCQDepth: min(int(hw.attr.max_cqe), maxCQDepth),
		MaxSegments: hw.segments(), MaxMessage: uint64(hw.portAt.max_msg_sz), MaxInline: hw.inline,
		Memory:  driver.MemoryInfo{LocalKeys: true},
		Writes:  driver.WriteInfo{Silent: true},
		Atomics: driver.AtomicInfo{Coherent: hw.attr.atomic_cap == C.IBV_ATOMIC_GLOB},
	}
}

// detail describes port, address and MTU, for errors and GRUN_VERBOSE.
func (hw *hardware) detail() string {
	if hw.ethernet() {
		return fmt.Sprintf("port %d, %v (GID %d) %v, MTU %d", hw.port, hw.gid.typ, hw.gid.index, hw.gid.gid, mtuBytes(hw.mtu))
	}
	return fmt.Sprintf("port %d, InfiniBand LID %d, MTU %d", hw.port, hw.portAt.lid, mtuBytes(hw.mtu))
}

// close destroys the objects that setUp has made.
func (hw *hardware) close() error {
	var errs [3]error
	if hw.channel != nil {
		errs[0] = errnoError(C.ibv_destroy_comp_channel(hw.channel))
	}
	if hw.pd != nil {
		errs[1] = errnoError(C.ibv_dealloc_pd(hw.pd))
	}
	errs[2] = errnoError(C.ibv_close_device(hw.context))
	return wrap(errors.Join(errs[:]...), "closing "+hw.name)
}

// errnoError returns the error of a call that returns an errno, of either sign.
func errnoError(rc C.int) error {
	if rc == 0 {
		return nil
	}
	if rc < 0 {
		rc = -rc
	}
	return unix.Errno(rc)
}

// outcome decodes the result of a post: how many requests the device took, and
// the error of the next one.
func outcome(result C.uint64_t) (int, error) {
	return int(uint32(result)), errnoError(C.int(result >> 32))
}

// wrap adds the action to an error of libibverbs.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("ibv: %s: %w", doing, err)
}
