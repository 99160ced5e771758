package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestClean(t *testing.T) {
	cases := map[string]struct{ printed, want string }{
		"text stays":                            {"a\tb\né中😀\n", "a\tb\né中😀\n"},
		"lines end as on Windows":               {"a\r\nb\r\n", "a\nb\n"},
		"a line written over":                   {"10%\r20%\r100%\nok", "100%\nok"},
		"a line that returns and ends":          {"100%\r\n", "100%\n"},
		"colors":                                {"\x1b[1;31mred\x1b[0m \x1b[38;5;4mblue\x1b[m", "red blue"},
		"titles, links and other texts":         {"\x1b]0;title\aa\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\x1bPx\x1b\\b", "alinkb"},
		"character sets and single keys":        {"\x1b(Ba\x1b=b\x1b7c", "abc"},
		"a sequence that is none":               {"\x1b[1\nb\x1b]x\nc\x1b\x1b[1md", "[1\nb]x\ncd"},
		"a sequence in a title":                 {"\x1b]x\x1b[1my\x1b]z\x1b", "]xy"},
		"a sequence that does not end":          {"a\x1b[1", "a"},
		"backspaces":                            {"abc\b\bd\n\b\b_\be", "ad\ne"},
		"control characters":                    {"a\x00\x01\x07b\x7fc\u0085d", "abcd"},
		"what is no UTF-8":                      {"a\xff\xc3(\xe4\xb8", "a\ufffd\ufffd(\ufffd"},
		"a title without end swallows a little": {"\x1b]" + strings.Repeat("x", 5000), "]" + strings.Repeat("x", 5000)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Clean([]byte(tc.printed))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whatever is printed, in whatever pieces: it is text, the same text, and memory
// is bounded.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a\r\nb\x1b[1mc\xff", "\x1b]0;t\x1b\\x\b\b", "é\r中\x1b", "\x1b[\x1b[\r\r\n", "\x1bP\x1b\\\x1b(B"} {
		f.Add([]byte(seed), uint8(1))
	}
	f.Fuzz(func(t *testing.T, printed []byte, size uint8) {
		want := Clean(printed)
		var c Cleaner
		var got strings.Builder
		n := max(int(size), 1)
		for rest := printed; len(rest) > 0; {
			piece := rest[:min(n, len(rest))]
			got.Write(c.Write(bytes.Clone(piece)))
			rest = rest[len(piece):]
			if len(c.partial) > maxEscape+4+n || len(c.line) > maxLine+n+utf8.UTFMax {
				t.Fatalf("%d and %d bytes are held", len(c.partial), len(c.line))
			}
		}
		got.Write(c.Flush())
		if len(printed) < maxEscape && got.String() != want { // beyond that, pieces may be cut elsewhere
			t.Fatalf("in pieces of %d: %q, at once: %q", n, got.String(), want)
		}
		if !utf8.ValidString(want) || strings.ContainsAny(want, "\x00\x1b\r\b\a\x7f") {
			t.Fatalf("Clean(%q) = %q", printed, want)
		}
		if again := Clean([]byte(want)); again != want {
			t.Fatalf("Clean(%q) = %q", want, again)
		}
	})
}

// A Clip of pieces keeps what one would cut from the whole.
func FuzzClip(f *testing.F) {
	f.Add("abcdefghij", uint8(3), uint8(2))
	f.Add(strings.Repeat("é中😀x", 30), uint8(7), uint8(10))
	f.Fuzz(func(t *testing.T, text string, size, most uint8) {
		text = strings.ToValidUTF8(text, "?")
		all := []rune(text)
		half := int(most) / 2
		c := NewClip(int(most))
		for rest, n := all, max(int(size), 1); len(rest) > 0; {
			piece := rest[:min(n, len(rest))]
			c.Write([]byte(string(piece)))
			rest = rest[len(piece):]
			if len(c.tail) > 2*utf8.UTFMax*half+utf8.UTFMax {
				t.Fatalf("%d bytes are kept", len(c.tail))
			}
		}
		head, tail := c.Ends()
		wantHead, wantTail := text, ""
		if len(all) > half {
			wantHead, wantTail = string(all[:half]), string(all[max(half, len(all)-half):])
		}
		if head != wantHead || tail != wantTail || c.Cut() != max(0, len(all)-2*half) {
			t.Fatalf("of %q: %q, %q, %d cut; want %q, %q", text, head, tail, c.Cut(), wantHead, wantTail)
		}
	})
}

func TestRing(t *testing.T) {
	r := NewRing(10)
	var whole []byte
	for i := range 50 {
		piece := []byte(strings.Repeat("abé"[:1+i%2], i%7) + "é")
		r.Write(piece)
		whole = append(whole, piece...)
		for offset := range int64(len(whole)) + 1 {
			text, lost := r.Since(offset)
			if got, want := string(text), string(whole[offset+lost:]); got != want {
				t.Fatalf("Since(%d) of %q = %q, want %q", offset, whole, got, want)
			}
			if lost > 0 && !utf8.Valid(text) || len(text) > 10 {
				t.Fatalf("Since(%d) of %q = %q, %d lost", offset, whole, text, lost)
			}
		}
		if len(r.data) > 20 {
			t.Fatalf("%d bytes are kept", len(r.data))
		}
	}
	r.Shrink(3)
	if text, _ := r.Since(0); !strings.HasSuffix(string(whole), string(text)) || len(text) > 3 {
		t.Errorf("Since(0) = %q", text)
	}
}

// nowhere is an Overflow on a disk that is full.
func nowhere(context.Context, string, io.Reader) (string, error) {
	return "", errors.New("no space left")
}

func TestWhereTheWholeIs(t *testing.T) {
	long := strings.Repeat("x", Shown+1)
	cases := map[string]struct {
		place Storage
		want  string
	}{
		"nowhere":                {Storage{}, "The whole was not kept; write it to a file to read it in parts."},
		"on a disk that is full": {Storage{Overflow: nowhere}, "The whole was not kept: no space left."},
		"in no directory":        {Storage{State: "/nowhere/at/all", Overflow: nowhere}, "The whole was not kept: making a file for the output: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := tc.place.Record("c1", func(string) {})
			defer r.Close()
			if tc.place.State != "" {
				r.Write(bytes.Repeat([]byte(long), 10))
			}
			r.Write([]byte(long))
			if got := r.Text(t.Context()); !strings.Contains(got, tc.want) {
				t.Errorf("got %s", got[Shown/2:len(got)-Shown/2])
			}
		})
	}
}

func TestTheWholeIsPutAwayAfterTheCallsTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	place := Storage{Overflow: func(ctx context.Context, _ string, text io.Reader) (string, error) {
		if _, limited := ctx.Deadline(); ctx.Err() != nil || !limited {
			t.Error("there is no time left, or no end of it")
		}
		_, err := io.Copy(io.Discard, text)
		return "/results/x", err
	}}
	r := place.Record("c1", func(string) {})
	defer r.Close()
	r.Write([]byte(strings.Repeat("x", Shown+1)))
	if got := r.Text(ctx); !strings.Contains(got, "[1 characters are cut out here. The whole is in /results/x: ") {
		t.Errorf("got %s", got[Shown/2:len(got)-Shown/2])
	}
}

// letters are pieces of output, of so many bytes each.
func letters(sizes ...int) (pieces [][]byte) {
	next := 0
	for _, n := range sizes {
		p := make([]byte, n)
		for i := range p {
			p[i] = "abcdefghijklmnopqrstuvwxyz"[next%26]
			next++
		}
		pieces = append(pieces, p)
	}
	return pieces
}

func TestCaptured(t *testing.T) {
	cases := map[string][]int{
		"nothing":            {},
		"a little":           {5, 1, 7},
		"just all":           {captureSize},
		"just all in pieces": {captureSize - 1, 1},
		"one more":           {captureSize, 1},
		"much in one piece":  {3*captureSize + 17},
		"much in pieces":     {40_000, 40_000, 40_000, 40_000, 11},
	}
	for name, sizes := range cases {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			calls, err := OpenCalls(state)
			if err != nil {
				t.Fatal(err)
			}
			c := calls.openCapture("c/1")
			var all []byte
			for _, p := range letters(sizes...) {
				c.write(p)
				all = append(all, p...)
			}
			want := string(all)
			if lost := len(all) - captureSize; lost > 0 {
				want = fmt.Sprintf("[%d bytes before this are not kept]\n%s", lost, all[lost:])
			}
			if got := Captured(state, "c/1"); got != want {
				t.Errorf("%d bytes, want %d: %.80q, want %.80q", len(got), len(want), got, want)
			}
			c.close()
			if got := Captured(state, "c/1"); got != want {
				t.Errorf("after the end: %.80q", got)
			}
		})
	}
}

func TestCapturesAreBounded(t *testing.T) {
	state := t.TempDir()
	for range 2 { // two attempts
		calls, err := OpenCalls(state)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			c := calls.openCapture(fmt.Sprintf("c%d", i))
			c.write([]byte("x"))
			c.close()
		}
	}
	left, err := os.ReadDir(filepath.Join(state, callsDir))
	if err != nil || len(left) > 2*maxKept {
		t.Errorf("%d are left, %v", len(left), err)
	}
	if got := Captured(state, "c99"); got != "x" {
		t.Errorf("Captured(c99) = %q", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	line := []byte(strings.Repeat("ok  \tgithub.com/deckhand-dev/deckhand/runner/tool\t0.1s \x1b[32mgreen\x1b[0m é\n", 900))
	b.SetBytes(int64(len(line)))
	r := Storage{State: b.TempDir()}.Record("c1", func(string) {})
	defer r.Close()
	for b.Loop() {
		r.Write(line)
	}
}
