//go:build ibverbs

package ibv

// #include "shim.h"
import "C"

import "math/rand/v2"

// psnGap is the least number of packet numbers between two connections of a queue pair, and
// half the largest. It is more than the requests under way have, and late packets of at
// least 16 earlier connections are behind: numbers have 24 bits.
const psnGap = 1 << 18

// newPSN returns the first packet number of a queue pair's first connection. It is random.
func newPSN() C.uint32_t { return C.uint32_t(rand.Uint32() & max24) }

// clear has the device reset the queue pair, and chooses the first packet number of the next
// connection. Some devices take a late acknowledgment with a number ahead of all requests for
// one of those requests. All ignore one with a number behind them. So the new numbers lie
// ahead of those of the earlier connection. Precondition: post and recvPost are held.
func (q *qp) clear() error {
	if q.nextPSN == 0 { // the device has not reset the queue pair yet
		q.nextPSN = q.aheadPSN()
	}
	return q.toDevice(C.IBV_QPS_RESET)
}

// aheadPSN returns a number that strangers cannot guess, ahead of the device's next one.
func (q *qp) aheadPSN() C.uint32_t {
	var attr C.struct_ibv_qp_attr
	var init C.struct_ibv_qp_init_attr
	if C.ibv_query_qp(q.hw, &attr, C.IBV_QP_SQ_PSN, &init) != 0 {
		return newPSN()
	}
	return (attr.sq_psn + psnGap + C.uint32_t(rand.Uint32N(psnGap))) & max24
}
