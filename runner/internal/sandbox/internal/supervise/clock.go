//go:build linux

package supervise

import "time"

// past is a deadline that makes every read return.
func past() time.Time { return time.Now() }
