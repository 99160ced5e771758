package operator

import "time"

// clock is the real one; tests wind their own.
func clock() time.Time { return time.Now() }
