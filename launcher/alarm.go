//go:build linux

package launcher

import "time"

// An alarm is a timer that does not count the time in which this process and the
// ranks are stopped.
type alarm struct {
	*time.Timer
	at time.Time // zero: not set
}

// newAlarm returns an alarm that is not set.
func newAlarm() *alarm {
	a := &alarm{Timer: time.NewTimer(0)}
	a.off()
	return a
}

// set has the alarm ring after d.
func (a *alarm) set(d time.Duration) {
	a.at = time.Now().Add(d)
	a.Reset(d)
}

// off keeps the alarm from ringing.
func (a *alarm) off() {
	a.at = time.Time{}
	a.Stop()
}

// putOff moves the alarm, if it is set, by the length of a stop.
func (a *alarm) putOff(by time.Duration) {
	if !a.at.IsZero() {
		a.set(time.Until(a.at) + by)
	}
}
