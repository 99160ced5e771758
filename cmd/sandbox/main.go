//go:build linux

// Command sandbox is the first process of the container in which an agent's programs run. It also installs itself into
// that container.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner/sandbox"
)

func main() { os.Exit(sandbox.Main()) }
