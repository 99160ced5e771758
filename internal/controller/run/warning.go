package run

import (
	"cmp"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// warned is the message of a result with its warning, which is kept whole.
func warned(r v1alpha1.Result) string {
	message := r.Message
	if r.Reason == v1alpha1.ReasonFinished {
		message = cmp.Or(message, workDone)
	}
	warning := task.Cut(r.Warning, task.MaxWarning)
	if message == "" {
		return warning
	}
	return strings.TrimSuffix(task.Cut(message, task.MaxMessage-len(warning)-len(". ")), ".") + ". " + warning
}

// workDone is the message of a Run whose runner says nothing of its own.
const workDone = "The work is done"
