package terminal

import (
	"io"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// Streams are the input, the outputs and the time of a command.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	Now func() time.Time
	// Interval is the delay between two checks of a command that waits.
	Interval time.Duration
}

// NewStreams returns the Streams of a process.
func NewStreams(in io.Reader, out, errOut io.Writer) Streams {
	return Streams{In: in, Out: out, Err: errOut, Now: clock.Now, Interval: time.Second}
}
