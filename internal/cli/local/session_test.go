package local

import (
	"bytes"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// A session is a user of the program deckhand-local.
type session struct {
	terminal.Streams
	out, err bytes.Buffer
}

func newSession(t *testing.T) *session {
	t.Helper()
	s := &session{}
	now := func() time.Time { return gen.Noon.Add(time.Hour) }
	s.Streams = terminal.Streams{In: strings.NewReader(""), Out: &s.out, Err: &s.err, Now: now, Interval: time.Millisecond}
	return s
}

// run runs the program and returns its exit code.
func (s *session) run(t *testing.T, args ...string) int {
	t.Helper()
	s.out.Reset()
	s.err.Reset()
	return Main(t.Context(), &s.Streams, "v1.2.3", args)
}

// text is everything that was printed: the output, and the errors behind it.
func (s *session) text() string { return s.out.String() + s.err.String() }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

// textEvent is a line of a log with a part of an answer.
func textEvent(n int, text string) string {
	return fmt.Sprintf(`{"v":1,"n":%d,"t":"2030-01-01T12:00:%02dZ","run":"fix","attempt":1,"type":"text.delta","data":{"step":1,"text":%q}}`+"\n", n, n, text)
}
