// Command custom-runner is a runner with its own models, tool, backends, session
// store, layer and listener.
package main

import (
	"os"

	"github.com/deckhand-dev/deckhand/runner"
)

func main() {
	os.Exit(runner.Main(
		runner.WithModel("parrot", newParrot),
		runner.WithModel("gateway", newGateway),
		runner.WithTool("Orders", newOrders),
		runner.WithBackend("/handbook", newHandbook),
		runner.WithBackend("/memories", newMemories),
		runner.WithStore(newArchive),
		runner.WithLayer(newPrivacy),
		runner.WithListener(logSlowCalls),
	))
}
