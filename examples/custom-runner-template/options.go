package main

import "github.com/deckhand-dev/deckhand/runner"

// options returns the additions of this runner, for the image and for your machine.
func options() []runner.Option {
	return []runner.Option{
		runner.WithTool("Stock", newStock),
	}
}
