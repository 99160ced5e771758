// Package terminal has the streams of a command, and the user at them: questions and their answers, the line that
// shows how it stands, and text that is harmless for a terminal.
package terminal

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// Interactive reports whether a user can be asked: In is a terminal, and what is asked is not written to
// a file or a pipe, where the user does not see it.
func (s *Streams) Interactive() bool {
	_, isFile := s.Err.(*os.File)
	return IsTerminal(s.In) && (!isFile || IsTerminal(s.Err))
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// A SafeWriter makes text harmless for the terminal that it writes to. Bytes at the end that begin
// a character and do not end it are left out.
type SafeWriter struct {
	Out io.Writer
	// rest is the beginning of a character that the next write continues.
	rest []byte
}

func (w *SafeWriter) Write(text []byte) (int, error) {
	all := slices.Concat(w.rest, text)
	end := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if last := all[len(all)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				end -= i
			}
			break
		}
	}
	w.rest = all[end:]
	_, err := io.WriteString(w.Out, untrusted.Text(string(all[:end])))
	return len(text), err
}

// columns returns the width of a terminal; 0: it is none, or its width is not known.
func columns(stream any) int {
	file, is := stream.(*os.File)
	if !is {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapped splits a line into parts of a width; 0: it is not split.
func wrapped(line string, width int) []string {
	const narrowest = 10
	if width < narrowest {
		return []string{line}
	}
	var parts []string
	begin, used := 0, 0
	for at, r := range line {
		n := conversation.Cells(r)
		if used+n > width {
			parts = append(parts, line[begin:at])
			begin, used = at, 0
		}
		used += n
	}
	return append(parts, line[begin:])
}

// Confirm asks the user a question. Only y and yes mean yes.
func (s *Streams) Confirm(ctx context.Context, question string, check func() error) (bool, error) {
	line, err := s.NewLineReader().Read(ctx, question+" [y/N] ", check)
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", err
}

// A LineReader reads answers of the user from the input. Input from before a question was printed
// does not answer it.
type LineReader struct {
	in       io.Reader
	out      io.Writer
	buffered *bufio.Reader
	lines    chan string
	reading  bool
	// interval is how often read calls check.
	interval time.Duration
}

// NewLineReader returns a LineReader of the input that asks on Err.
func (s *Streams) NewLineReader() *LineReader {
	return &LineReader{in: s.In, out: s.Err, buffered: bufio.NewReader(s.In), lines: make(chan string, 1), interval: s.Interval}
}

// Read prints a question and returns the line that the user writes. It ends with the error of
// check, which is called now and then and for the line. At the end of the input the line is empty.
func (r *LineReader) Read(ctx context.Context, question string, check func() error) (string, error) {
	r.forget()
	fmt.Fprint(r.out, question)
	if !r.reading {
		r.reading = true
		go func() { // ends with the process if nobody writes a line
			line, _ := r.buffered.ReadString('\n')
			r.lines <- line
		}()
	}
	for {
		timer := time.NewTimer(r.interval)
		select {
		case <-ctx.Done():
			timer.Stop()
			fmt.Fprintln(r.out)
			return "", ctx.Err()
		case line := <-r.lines:
			timer.Stop()
			r.reading = false
			if !strings.HasSuffix(line, "\n") {
				fmt.Fprintln(r.out)
			}
			return line, check() // the last look may have been a while ago
		case <-timer.C:
		}
		if err := check(); err != nil {
			fmt.Fprintln(r.out)
			return "", err
		}
	}
}

// forget discards the input so far.
func (r *LineReader) forget() {
	select {
	case <-r.lines: // an answer to a question that was withdrawn
		r.reading = false
	default:
	}
	if !r.reading { // otherwise the buffer is in use, and empty
		_, _ = r.buffered.Discard(r.buffered.Buffered())
	}
	if file, is := r.in.(*os.File); is {
		discardInput(file)
	}
}

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
