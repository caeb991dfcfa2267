//go:build ibverbs

package ibv

/*
#cgo LDFLAGS: -libverbs
#cgo noescape gopgas_post_send
#cgo nocallback gopgas_post_send
#cgo noescape gopgas_post_recv
#cgo nocallback gopgas_post_recv
#cgo noescape gopgas_poll
#cgo nocallback gopgas_poll
#include "shim.h"
*/
import "C"

import "unsafe"

// batch is the number of requests or completions that cross into C at once.
const batch = C.GOPGAS_BATCH

// These types cross into C.
type (
	flatSend       = C.struct_gopgas_send
	flatRecv       = C.struct_gopgas_recv
	flatSegment    = C.struct_ibv_sge
	flatCompletion = C.struct_gopgas_completion
	flatEvent      = C.struct_gopgas_event
	flatPath       = C.struct_gopgas_path
)

// addressOf returns the address of b for the device.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// postSend hands requests to the device and returns how many it took.
func postSend(qp *C.struct_ibv_qp, requests []flatSend, segments []flatSegment) (int, error) {
	return outcome(C.gopgas_post_send(qp, unsafe.SliceData(requests), C.int(len(requests)), unsafe.SliceData(segments)))
}

func postRecv(qp *C.struct_ibv_qp, requests []flatRecv, segments []flatSegment) (int, error) {
	return outcome(C.gopgas_post_recv(qp, unsafe.SliceData(requests), C.int(len(requests)), unsafe.SliceData(segments)))
}

func pollCQ(cq *C.struct_ibv_cq, completions []flatCompletion) int {
	return int(C.gopgas_poll(cq, unsafe.SliceData(completions), C.int(len(completions))))
}

// completionEvents returns the ids of the CQs that have an event.
func completionEvents(channel *C.struct_ibv_comp_channel, ids []uint64) []uint64 {
	return ids[:C.gopgas_cq_events(channel, (*C.uint64_t)(unsafe.SliceData(ids)), C.int(len(ids)))]
}

func asyncEvents(context *C.struct_ibv_context, events []flatEvent) []flatEvent {
	return events[:C.gopgas_async_events(context, unsafe.SliceData(events), C.int(len(events)))]
}

// queryGIDs returns the GIDs of a port. A type that is newer than RoCE v2 counts as that.
func queryGIDs(context *C.struct_ibv_context, port int) []gidEntry {
	var flat [256]C.struct_gopgas_gid
	n := int(C.gopgas_query_gids(context, C.int(port), &flat[0], C.int(len(flat))))
	table := make([]gidEntry, n)
	for i := range table {
		g := &flat[i]
		table[i] = gidEntry{index: int(g.index), typ: gidType(min(g._type, C.uint32_t(gidRoCEv2))), gid: *(*gid)(unsafe.Pointer(&g.gid))}
	}
	return table
}

// eachDevice calls f with every device and its name until f returns false.
func eachDevice(f func(dev *C.struct_ibv_device, name string) bool) error {
	var n C.int
	list, err := C.ibv_get_device_list(&n)
	if list == nil {
		return err
	}
	defer C.ibv_free_device_list(list)
	for _, dev := range unsafe.Slice(list, n) {
		if !f(dev, C.GoString(C.ibv_get_device_name(dev))) {
			break
		}
	}
	return nil
}
