// Command custom-runner is a runner with a model, a tool, a layer, files and a
// store of sessions of its own.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() {
	os.Exit(runner.Main(
		runner.WithModel("parrot", newParrot),
		runner.WithTool("Orders", newOrders),
		runner.WithLayer(newPrivacy),
		runner.WithBackend("/handbook", newHandbook),
		runner.WithStore(newArchive),
	))
}
