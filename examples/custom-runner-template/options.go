package main

import "github.com/deckhand-dev/deckhand/runner"

// options returns what this runner has beside what every runner has: in the image, and on your
// machine.
func options() []runner.Option {
	return []runner.Option{
		runner.WithTool("Stock", newStock),
	}
}
