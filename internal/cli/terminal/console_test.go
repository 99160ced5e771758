package terminal

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheStatusLineIsBelowTheConversations(t *testing.T) {
	var sent bytes.Buffer
	c := Console{Status: &StatusLine{out: &sent, columns: func() int { return 16 }}}
	a, b := c.Stream(&sent), c.Stream(&sent)
	write := func(s *Stream, text string) func() {
		return func() {
			if _, err := io.WriteString(s, text); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{write(a, "one\n"), "one\n"},
		{func() { c.SetStatus("Running · 1s") }, "one\nRunning · 1s"},
		{func() { c.SetStatus("Running · 2s, and more") }, "one\nRunning · 2s,"},
		{write(a, "two\n"), "one\ntwo\nRunning · 2s,"},
		{write(a, "thr"), "one\ntwo\nthr"}, // an open line has no status below it
		{func() { c.SetStatus("Running · 3s") }, "one\ntwo\nthr"},
		{write(a, "ee\n"), "one\ntwo\nthree\nRunning · 3s"},
		{write(a, "fo"), "one\ntwo\nthree\nfo"},
		{write(b, "five\n"), "one\ntwo\nthree\nfo\nfive\nRunning · 3s"},
		{c.Hold, "one\ntwo\nthree\nfo\nfive\n"}, // the user is asked here
		{c.Release, "one\ntwo\nthree\nfo\nfive\n"},
		{func() { c.SetStatus("Running · 4s") }, "one\ntwo\nthree\nfo\nfive\nRunning · 4s"},
		{func() { c.SetStatus("") }, "one\ntwo\nthree\nfo\nfive\n"},
		{write(b, "six\n"), "one\ntwo\nthree\nfo\nfive\nsix\n"},
	} {
		step.do()
		if got := strings.TrimSuffix(onScreen(sent.String()), "…"); got != step.want {
			t.Fatalf("the screen shows %q, want %q", got, step.want)
		}
	}
}

func TestLinesOfConversationsAreNotMixed(t *testing.T) {
	var out strings.Builder
	var screen Console
	a, b := screen.Stream(&out), screen.Stream(&out)
	for _, write := range []struct {
		to   *Stream
		text string
	}{{a, "one "}, {a, "line"}, {b, "another\n"}, {a, "of a"}, {b, "more\n"}, {a, "\nlast\n"}, {b, "open"}} {
		if _, err := write.to.Write([]byte(write.text)); err != nil {
			t.Fatal(err)
		}
	}
	screen.Hold()
	screen.Release()
	if diff := cmp.Diff("one line\nanother\nof a\nmore\nlast\nopen\n", out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCharactersThatAreWrittenInPiecesStayWhole(t *testing.T) {
	const text, want = "caf\u00e9 \x1b[2J\u6771\u4eac \U0001f6a2\xff!", "caf\u00e9 \\x1b[2J\u6771\u4eac \U0001f6a2\ufffd!"
	for size := 1; size <= len(text); size++ {
		var screen strings.Builder
		w := &SafeWriter{Out: &screen}
		for piece := range slices.Chunk([]byte(text), size) {
			if n, err := w.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if screen.String() != want {
			t.Errorf("in pieces of %d bytes: %q", size, screen.String())
		}
	}
}

// onScreen is what a terminal shows that was sent a text.
func onScreen(sent string) string {
	var lines []string
	for line := range strings.SplitSeq(sent, "\n") {
		if at := strings.LastIndex(line, clearLine); at >= 0 {
			line = line[at+len(clearLine):]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
