//go:build !linux

package local

import (
	"os"
	"os/exec"
)

// thisKernel returns a kernel without confinement: only Linux has it.
func thisKernel() kernel { return kernel{} }

// isWritable returns true. It is called on Linux only.
func isWritable(string) bool { return true }

// isLocked returns false, because runners lock their journals on Linux only.
func isLocked(string) bool { return false }

// lockFile, isUnlocked and isOwn are called on Linux only.
func lockFile(*os.File) error { return nil }
func isUnlocked(string) bool  { return false }
func isOwn(string) bool       { return false }

func isolate(*exec.Cmd) {}
