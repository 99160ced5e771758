// Command deckhand-local runs an Agent on this machine: it is kubectl deckhand run --local and nothing else, so that it
// links no client of Kubernetes and builds in a fraction of the time. make try runs it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/cli/local"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	// Otherwise Go ends the process when the reader of its output does, such as head, and temporary directories stay.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	streams := terminal.NewStreams(os.Stdin, os.Stdout, os.Stderr)
	code := local.Main(ctx, &streams, version, os.Args[1:])
	stop()
	os.Exit(code)
}
