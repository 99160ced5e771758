//go:build !local

// Command my-runner is a runner with a tool of its own.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() { os.Exit(runner.Main(options()...)) }
