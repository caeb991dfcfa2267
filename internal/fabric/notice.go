package fabric

import "github.com/gopgas/gopgas/verbs/driver"

// On devices whose writes are silent (driver.DeviceInfo.SilentWrites) whoever
// sets a flag sends a notice behind it: an immediate, which consumes one of the
// receives that the target has posted for it. The target's program takes no
// part: an event of the device posts the receive anew and rings the bell.

// noticeDepth is how many notices of one peer may be on their way; more of them
// wait at the sender.
const noticeDepth = 64

// expect posts n receives for notices, where the device needs them.
func (in *inbound) expect(n int) {
	if !in.bind.info.SilentWrites {
		return
	}
	// An error means that the connection is over, which its peer learns.
	_, _ = in.qp.PostRecv(make([]driver.RecvRequest, n))
}

// noticed takes the completion of a receive.
func (b *binding) noticed(wc *driver.Completion) {
	if in, ok := b.receivers.Load(wc.QP); ok && wc.Status == driver.Success {
		in.(*inbound).expect(1)
	}
}

// arm asks b for an event at the next notice, in case nobody polls then.
func (b *binding) arm() {
	if b.info.SilentWrites {
		// An error means that the device is gone, which operations report.
		_ = b.cq.Arm(true)
	}
}

// completionEvent does what a device that rings on demand asks for: it takes
// what has completed and asks for the next event. What came in between is seen
// by the second look.
func (f *Fabric) completionEvent(b *binding) {
	f.Progress()
	b.arm()
	f.Progress()
	f.bell.Ring()
}

// armAll is what goroutines do that are about to sleep.
func (f *Fabric) armAll() {
	for _, b := range f.bindings {
		// As in arm.
		_ = b.cq.Arm(false)
	}
}
