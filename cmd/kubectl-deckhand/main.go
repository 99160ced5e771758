// Command kubectl-deckhand shows and controls Runs. As a plugin of kubectl it is called
// with "kubectl deckhand". It has the rights of the user who calls it and no others.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/cli"
)

// version is stamped by the build.
var version = "unknown"

func main() {
	// Without this, Go ends the process when the reader of its output ends, such as head, and pods that it created
	// remain. With it, the next write returns an error.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Main(ctx, cli.NewFactory(os.Stdin, os.Stdout, os.Stderr), version, os.Args[1:])
	stop()
	os.Exit(code)
}
