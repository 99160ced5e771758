package sandbox

import (
	"fmt"
	"path"
	"strings"
)

// Bounds of a command. The kernel has its own for arguments, which are lower for
// a single one.
const (
	maxID    = 256
	maxArgs  = 4096
	maxEnv   = 1024
	maxLimit = 1 << 20 // processes; no container has as many
)

// Check says whether a command is one that can be tried.
func (c Command) Check() error {
	wrong := func(format string, args ...any) error {
		return &RefusedError{Reason: Malformed, Subject: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(c.Args) == 0 || c.Args[0] == "":
		return wrong("it names no program")
	case len(c.ID) > maxID:
		return wrong("its ID has %d bytes; at most %d are kept", len(c.ID), maxID)
	case len(c.Args) > maxArgs || len(c.Env) > maxEnv:
		return wrong("it has more than %d arguments or %d variables; pass them through a file", maxArgs, maxEnv)
	case c.Dir != "" && !path.IsAbs(c.Dir):
		return wrong("its directory %q is not absolute", c.Dir)
	case c.Limits.Timeout < 0 || c.Limits.Output < 0 || c.Limits.Processes < 0 || c.Limits.Processes > maxLimit:
		return wrong("a limit is negative or out of reach")
	case strings.ContainsRune(c.ID+c.Dir+strings.Join(c.Args, ""), 0):
		return wrong("it contains a NUL character")
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return wrong("%q is no variable of an environment", name)
		}
	}
	return nil
}
