// Package clock reads the time of the machine. It is the only place outside of programs that may: everything else is
// given the time, or a function that returns it, so that tests can control it.
package clock

import "time"

// Now returns the time of the machine.
func Now() time.Time { return time.Now() }

// Or returns now, and Now if that is nil: the default of an option.
func Or(now func() time.Time) func() time.Time {
	if now == nil {
		return Now
	}
	return now
}
