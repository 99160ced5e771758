package mcp

import "time"

// clock is the time where Options do not bring their own.
var clock = time.Now
