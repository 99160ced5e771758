package runner

import (
	"path/filepath"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// storedEvents are the events of a Run with a volume, stored beside the journal: kubectl deckhand
// logs reads them after the pods were deleted. Deltas are left out, because each step has the whole
// text. Nil: they are not stored.
type storedEvents struct {
	writer *eventlog.Writer
	file   *eventlog.File
}

// storeEvents stores the events of a feed as o says, in the state directory.
func storeEvents(state string, o eventlog.Options) (*storedEvents, error) {
	file, err := eventlog.OpenFile(filepath.Join(state, task.EventsFolder))
	if err != nil {
		return nil, err
	}
	o.Out, o.Mode = file, eventlog.Steps
	return &storedEvents{writer: eventlog.New(o), file: file}, nil
}

// close stores what is queued, at most as long as timeout. The file stays open if the disk does
// not answer: the process ends.
func (s *storedEvents) close(timeout time.Duration) {
	if s != nil && s.writer.Close(timeout) {
		_ = s.file.Close() // all is written
	}
}
