package httpapi

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	broken := errors.New("connection reset")
	cases := map[string]struct {
		stream string
		want   []string // name, colon, data
		err    error
	}{
		"an event with a name":                {"event: a\ndata: 1\n\n", []string{"a:1"}, ErrEnd},
		"lines end with CRLF":                 {"event: a\r\ndata: 1\r\n\r\n", []string{"a:1"}, ErrEnd},
		"no space after the colon":            {"event:a\ndata:1\n\n", []string{"a:1"}, ErrEnd},
		"data on several lines":               {"data: {\"a\":\ndata: 1}\n\n", []string{":{\"a\":\n1}"}, ErrEnd},
		"no empty line between two events":    {"event: a\ndata: 1\nevent: b\ndata: 2\n\n", []string{"a:1", "b:2"}, ErrEnd},
		"no empty line and no names":          {"data: 1\ndata: 2\n", []string{":1", ":2"}, ErrEnd},
		"the last line has no newline":        {"data: 1", []string{":1"}, ErrEnd},
		"the end is marked":                   {"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", []string{":1"}, ErrDone},
		"the mark follows without empty line": {"data: 1\ndata: [DONE]\n", []string{":1"}, ErrDone},
		"comments and other fields":           {": hello\n\nid: 7\nretry: 10\ndata: 1\n: more\n\n", []string{":1"}, ErrEnd},
		"a name without data is forgotten":    {"event: error\n\ndata: 1\n\n", []string{":1"}, ErrEnd},
		"data without anything in them":       {"data:\n\ndata:\ndata: 1\n\n", []string{":1"}, ErrEnd},
		"a field named error":                 {"error: no\n\ndata: 1\n\n", []string{"error:no", ":1"}, ErrEnd},
		"a field named error after data":      {"data: 1\nerror: no\n", []string{":1", "error:no"}, ErrEnd},
		"a bare object":                       {"{\"error\":1}\n", []string{":{\"error\":1}"}, ErrEnd},
		"complete data before it breaks":      {"data: 1\n<broken>", []string{":1"}, broken},
		"a part of data before it breaks":     {"data: {\n<broken>", nil, broken},
		"a part of a line before it breaks":   {"data: 1\n\ndata: 2<broken>", []string{":1"}, broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var in io.Reader = strings.NewReader(tc.stream)
			if before, _, breaks := strings.Cut(tc.stream, "<broken>"); breaks {
				in = io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
			}
			events := &Events{lines: lineReader{in: bufio.NewReader(iotest.OneByteReader(in))}}
			var got []string
			event, err := events.Next()
			for ; err == nil; event, err = events.Next() {
				got = append(got, string(event.Name)+":"+string(event.Data))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v; -want +got:\n%s", err, tc.err, diff)
			}
			if _, again := events.Next(); !errors.Is(again, tc.err) {
				t.Errorf("then %v, want %v", again, tc.err)
			}
		})
	}
}

func TestLongLinesAreRefused(t *testing.T) {
	tooLong := errors.New("too long")
	for length, want := range map[int]error{maxLine - len("data: "): ErrEnd, maxLine: tooLong} {
		in := strings.NewReader("data: " + strings.Repeat("a", length))
		events := &Events{lines: lineReader{in: bufio.NewReader(in), tooLong: tooLong}}
		event, err := events.Next()
		if err == nil {
			_, err = events.Next()
		}
		if !errors.Is(err, want) || errors.Is(want, ErrEnd) && len(event.Data) != length {
			t.Errorf("%d bytes of %d, %v", len(event.Data), length, err)
		}
	}
}
