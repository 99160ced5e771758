package report

import (
	"fmt"
	"os"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Terminate writes the termination message of a runner.
func Terminate(path string, last task.Termination) error {
	// The kubelet creates the file; without a kubelet there is none.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("opening the termination message: %w", err)
	}
	if _, err := f.Write(last.Encode()); err != nil {
		return fmt.Errorf("writing the termination message: %w", err)
	}
	return f.Close()
}
