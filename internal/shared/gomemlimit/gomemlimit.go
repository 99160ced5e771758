// Package gomemlimit fits the memory limit of Go's garbage collector to the container.
package gomemlimit

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryPercent of the container's memory may be taken before memory is given back
// more eagerly: the kernel kills a process that takes all of it.
const memoryPercent = 80

// memoryFiles say how much memory the container may take: of the second version of
// control groups ("max" where there is no limit), and of the first.
var memoryFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// Fit sets the memory limit of the garbage collector to 80 % of what the container may
// take. The environment variable GOMEMLIMIT takes precedence.
func Fit() { fit(memoryFiles) }

// fit reads the limit from the first of some files that exists.
func fit(files []string) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // this version of control groups is not there
		}
		if most, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && most > 0 {
			debug.SetMemoryLimit(most / 100 * memoryPercent)
		}
		return
	}
}
