//go:build linux

// Command sandbox is the first process of a container in which an agent's
// programs run, and what puts itself there.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner/sandbox"
)

func main() { os.Exit(sandbox.Main()) }
