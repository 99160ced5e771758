package report

import (
	"fmt"
	"os"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Terminate writes the last word of a runner where the kubelet reads it.
func Terminate(path string, last task.Termination) error {
	// The kubelet made the file; one that is not there means no kubelet.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("opening the termination message: %w", err)
	}
	if _, err := f.Write(last.Encode()); err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	return f.Close()
}
