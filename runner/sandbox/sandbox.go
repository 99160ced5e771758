//go:build linux

// Package sandbox is the program of the container in which an agent's commands run.
package sandbox

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/server"
)

// Main is the program sandbox: the first process of a container with the user's image. It also installs itself into the
// volume from which that container starts it. It returns the exit code.
func Main() int { return server.Main(os.Args[1:], os.Stderr) }
