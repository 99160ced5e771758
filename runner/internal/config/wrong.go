package config

import "github.com/deckhand-dev/deckhand/runner/task"

// misconfigured is an end that only a change of the user's objects avoids.
func misconfigured(format string, args ...any) error {
	return task.End(task.ReasonMisconfigured, format, args...)
}
