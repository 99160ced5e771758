package runner

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// memoryFile says how much memory the container may take, or "max".
	memoryFile = "/sys/fs/cgroup/memory.max"
	// memoryPercent of it may be taken before memory is given back more eagerly:
	// the kernel kills whoever takes all of it.
	memoryPercent = 80
)

// fitMemory has the garbage collector know how much memory there is. What
// whoever deploys the runner says in GOMEMLIMIT goes before it.
func fitMemory(file string) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return // there is no such limit here
	}
	if most, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && most > 0 {
		debug.SetMemoryLimit(most / 100 * memoryPercent)
	}
}
