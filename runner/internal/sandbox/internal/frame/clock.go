package frame

import "time"

// clock is the time of the machine, which deadlines of connections are set by.
func clock() time.Time { return time.Now() }
