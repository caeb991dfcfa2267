package wq

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// follow has a bit for every state that may follow, as in ibv_modify_qp(3). RESET
// and ERR follow any state. RTS follows SQD when posting may go on.
var follow = [...]uint8{
	driver.StateReset: 1<<driver.StateReset | 1<<driver.StateInit | 1<<driver.StateErr,
	driver.StateInit:  1<<driver.StateReset | 1<<driver.StateInit | 1<<driver.StateRTR | 1<<driver.StateErr,
	driver.StateRTR:   1<<driver.StateReset | 1<<driver.StateRTS | 1<<driver.StateErr,
	driver.StateRTS:   1<<driver.StateReset | 1<<driver.StateRTS | 1<<driver.StateSQD | 1<<driver.StateErr,
	driver.StateSQD:   1<<driver.StateReset | 1<<driver.StateRTS | 1<<driver.StateSQD | 1<<driver.StateErr,
	driver.StateErr:   1<<driver.StateReset | 1<<driver.StateErr,
}

// Transition returns nil if the state to may follow from, else an error that wraps
// driver.ErrState. A provider asks after package verbs has, because its queue pair
// may have gone to ERR since.
func Transition(from, to driver.State) error {
	if int(from) < len(follow) && follow[from]&(1<<to) != 0 {
		return nil
	}
	return fmt.Errorf("%w: no transition from %v to %v", driver.ErrState, from, to)
}

// TakesSends reports whether PostSend takes requests in state s. In ERR they are
// flushed.
func TakesSends(s driver.State) bool {
	return s == driver.StateRTS || s == driver.StateSQD || s == driver.StateErr
}

// TakesReceives reports whether PostRecv takes requests in state s. In ERR they are
// flushed.
func TakesReceives(s driver.State) bool { return s != driver.StateReset }
