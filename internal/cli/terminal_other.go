//go:build !linux && !darwin && !windows

package cli

import "os"

// discardInput does nothing: on this system, what was typed before a question is not dropped.
func discardInput(*os.File) {}
