//go:build !linux

package local

import (
	"os"
	"os/exec"
)

// thisKernel returns a kernel without confinement: only Linux has it.
func thisKernel() kernel { return kernel{} }

// isWritable is asked on Linux only.
func isWritable(string) bool { return true }

// isLocked is true on Linux only, where runners lock their journals.
func isLocked(string) bool { return false }

// lockFile, isUnlocked and isOwn are called on Linux only.
func lockFile(*os.File) error { return nil }
func isUnlocked(string) bool  { return false }
func isOwn(string) bool       { return false }

func isolate(*exec.Cmd) {}
