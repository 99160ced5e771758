package runner

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// sendFiles writes a file or directory of a workspace as a tar archive and returns the exit
// code. The user who reads it has the right to exec into the pod.
func sendFiles(stdout, stderr io.Writer, dir, path string) int {
	if err := workspace.WriteArchive(stdout, dir, path); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// waitForTermination waits until the kubelet ends the container.
func waitForTermination() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	<-ctx.Done()
	return 0
}
