//go:build local

// Command my-runner is the runner on your machine, without a cluster.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() { os.Exit(runner.MainLocal(options()...)) }
