package main

import (
	"os"
	"runtime/debug"

	"github.com/deckhand-dev/deckhand/internal/shared/gomemlimit"
)

// gcPercent is how much the heap may grow over what is alive. Nearly all of that is
// the cache, which stays: with 10,000 finished Runs and their pods the default of 100
// takes 25 MiB more, and no less CPU.
const gcPercent = 50

// fitMemory fits the garbage collector to the container and to what the operator
// keeps. The environment variables GOMEMLIMIT and GOGC take precedence.
func fitMemory() {
	gomemlimit.Fit()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
