//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// statusOf maps enum ibv_wc_status. Statuses that ADR 1 does not name become
// GeneralError.
func statusOf(raw *flatCompletion) driver.Status {
	switch raw.status {
	case C.IBV_WC_SUCCESS:
		return driver.Success
	case C.IBV_WC_LOC_LEN_ERR:
		return driver.LocalLength
	case C.IBV_WC_LOC_PROT_ERR, C.IBV_WC_LOC_QP_OP_ERR: // some kernels report LOC_QP_OP_ERR for a bad key
		return driver.LocalProtection
	case C.IBV_WC_WR_FLUSH_ERR:
		return driver.Flushed
	case C.IBV_WC_REM_INV_REQ_ERR:
		return driver.RemoteInvalid
	case C.IBV_WC_REM_ACCESS_ERR:
		return driver.RemoteAccess
	case C.IBV_WC_REM_OP_ERR:
		return driver.RemoteOperation
	case C.IBV_WC_RETRY_EXC_ERR:
		return driver.RetryExceeded
	case C.IBV_WC_RNR_RETRY_EXC_ERR:
		return driver.ReceiverNotReady
	}
	return driver.GeneralError
}

// A SEND longer than its receive is a length error at the receiver and an
// invalid request at the sender. Soft devices differ: the receiver reports a
// malformed receive or an invalid request, the sender a failed operation.

// recvStatus returns the status of a receive. Devices differ on a message that is too long.
func recvStatus(raw *flatCompletion) driver.Status {
	if raw.status == C.IBV_WC_LOC_QP_OP_ERR || raw.status == C.IBV_WC_REM_INV_REQ_ERR {
		return driver.LocalLength
	}
	return statusOf(raw)
}

// sendStatus returns the status of a send. Devices differ on a SEND that is too long for its receive.
func sendStatus(raw *flatCompletion, op driver.Opcode) driver.Status {
	if op == driver.OpSend && raw.status == C.IBV_WC_REM_OP_ERR {
		return driver.RemoteInvalid
	}
	return statusOf(raw)
}

// seePeer is the next step after a peer gave no sign of life.
const seePeer = "see that the peer runs and that the ports of both hosts are up"

// explain returns the cause of a failed request, the device's words for it, and the next step.
func (q *qp) explain(status driver.Status, raw *flatCompletion) error {
	device := fmt.Sprintf("device status %d, vendor's code %#x", raw.status, raw.vendor_error)
	switch status {
	case driver.RetryExceeded:
		return fmt.Errorf("%w: no response within %v of %d tries; %s", driver.ErrLost, q.timeout, q.dev.cfg.RetryCount+1, seePeer)
	case driver.RemoteInvalid:
		return fmt.Errorf("%w: the peer's device cannot carry out the request (%s); see its length and its alignment", driver.ErrInvalid, device)
	case driver.RemoteAccess:
		return fmt.Errorf("%w: the peer's device refuses the access (%s); see the key, the bounds and the rights of the peer's region", driver.ErrAccess, device)
	case driver.RemoteOperation:
		return fmt.Errorf("%w: the peer's device failed in the request (%s); see its host's kernel log, then connect again", driver.ErrLost, device)
	}
	return fmt.Errorf("ibv: %s", device)
}

// opcodes maps driver.Opcode to enum ibv_wr_opcode.
var opcodes = [...]C.uint32_t{
	driver.OpWrite:    C.IBV_WR_RDMA_WRITE,
	driver.OpWriteImm: C.IBV_WR_RDMA_WRITE_WITH_IMM,
	driver.OpRead:     C.IBV_WR_RDMA_READ,
	driver.OpSend:     C.IBV_WR_SEND,
	driver.OpFetchAdd: C.IBV_WR_ATOMIC_FETCH_AND_ADD,
	driver.OpCmpSwap:  C.IBV_WR_ATOMIC_CMP_AND_SWP,
}

// sendFlags returns the flags of a request as libibverbs writes them.
func sendFlags(f driver.Flags) (flags C.uint32_t) {
	if f&driver.Signaled != 0 {
		flags |= C.IBV_SEND_SIGNALED
	}
	if f&driver.Inline != 0 {
		flags |= C.IBV_SEND_INLINE
	}
	if f&driver.Fence != 0 {
		flags |= C.IBV_SEND_FENCE
	}
	if f&driver.Solicited != 0 {
		flags |= C.IBV_SEND_SOLICITED
	}
	return flags
}
