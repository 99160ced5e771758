// Command runner is the program of a runner pod.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() { os.Exit(runner.Main()) }
