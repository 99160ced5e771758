// Package gomemlimit fits the memory limit of Go's garbage collector to the container.
package gomemlimit

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryPercent is the part of the container's memory above which memory is returned more eagerly: the kernel kills a
// process that uses all of it.
const memoryPercent = 80

// memoryFiles have the memory limit of the container: for version 2 of control groups ("max" without a limit), and for
// version 1.
var memoryFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// Fit sets the memory limit of the garbage collector to 80 % of the container's limit. The environment variable
// GOMEMLIMIT takes precedence.
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
