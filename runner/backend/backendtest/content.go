package backendtest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// ignoreVersion is for comparisons that do not depend on the version or the format. testFormat compares formats.
var ignoreVersion = cmpopts.IgnoreTypes(backend.Version(""), backend.Format{})

func testRead(t *testing.T, b *backend.Backend) {
	cases := map[string]struct {
		content string
		window  backend.Window
		want    backend.Page
	}{
		"an empty file has no lines": {
			window: backend.Window{Limit: 100},
		},
		"a last line without an end counts": {
			content: "a\nb", window: backend.Window{Limit: 100},
			want: backend.Page{Lines: []string{"a", "b"}, Start: 1, Total: 2},
		},
		"a last line end begins no line": {
			content: "a\nb\n", window: backend.Window{Limit: 100},
			want: backend.Page{Lines: []string{"a", "b"}, Start: 1, Total: 2},
		},
		"empty lines are lines": {
			content: "\n\n", window: backend.Window{Limit: 100},
			want: backend.Page{Lines: []string{"", ""}, Start: 1, Total: 2},
		},
		"a window in the middle": {
			content: "a\nb\nc\nd\n", window: backend.Window{Offset: 1, Limit: 2},
			want: backend.Page{Lines: []string{"b", "c"}, Start: 2, Total: 4},
		},
		"a window over the end": {
			content: "a\nb\nc\n", window: backend.Window{Offset: 2, Limit: 9},
			want: backend.Page{Lines: []string{"c"}, Start: 3, Total: 3},
		},
		"a window behind the end shows nothing but the total": {
			content: "a\nb\n", window: backend.Window{Offset: 2, Limit: 9},
			want: backend.Page{Total: 2},
		},
		"line ends of Windows and a byte order mark are not shown": {
			content: "\ufeffa\r\nb\r\n", window: backend.Window{Limit: 9},
			want: backend.Page{Lines: []string{"a", "b"}, Start: 1, Total: 2},
		},
		"a page ends before the line that does not fit": {
			content: "a\n" + strings.Repeat("x", backend.MaxPage) + "\nb\n", window: backend.Window{Limit: 9},
			want: backend.Page{Lines: []string{"a"}, Start: 1, Total: 3},
		},
		"the first line of a page is cut to fit": {
			content: strings.Repeat("x", backend.MaxPage+100_000) + "\nb\n", window: backend.Window{Limit: 9},
			want: backend.Page{Lines: []string{strings.Repeat("x", backend.MaxPage)}, Start: 1, Total: 2},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			put(t, b, "f", tc.content)
			got, err := b.Read(t.Context(), "f", tc.window)
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			if diff := cmp.Diff(tc.want, got, ignoreVersion, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Read() -want +got:\n%s", diff)
			}
		})
	}
}

// testFormat checks that the format describes the whole file, for any window.
func testFormat(t *testing.T, b *backend.Backend) {
	cases := map[string]struct {
		content string
		want    backend.Format
	}{
		"an empty file":               {"", backend.Format{}},
		"plain line ends":             {"a\nb\n", backend.Format{LF: 2}},
		"line ends of Windows":        {"a\r\nb\r\nc", backend.Format{CRLF: 2}},
		"mixed line ends":             {"a\r\nb\n\r\n\n", backend.Format{CRLF: 2, LF: 2}},
		"a carriage return is no end": {"a\rb\r\r\n\r", backend.Format{CRLF: 1}},
		"a byte order mark":           {"\ufeff", backend.Format{BOM: true}},
		"a mark later on is none":     {"a\ufeff", backend.Format{}},
		"characters of all lengths":   {"aé☃𝄞\ufffd", backend.Format{}},
		"Latin-1":                     {"caf\xe9\n\xe9\xff", backend.Format{LF: 1, Invalid: 3}},
		"a character that is cut":     {"a\xf0\x9d\x84", backend.Format{Invalid: 3}},
		"surrogates and long forms":   {"\xed\xa0\x80\xc0\xaf", backend.Format{Invalid: 5}},
		"more than is read at once": {
			strings.Repeat("☃\r\n", 100_000) + "\xe9" + strings.Repeat("é\n", 100_000),
			backend.Format{CRLF: 100_000, LF: 100_000, Invalid: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			put(t, b, "f", tc.content)
			page, err := b.Read(t.Context(), "f", backend.Window{Offset: 1, Limit: 1})
			if err != nil {
				t.Fatalf("Read: %v", err)
			}
			if diff := cmp.Diff(tc.want, page.Format); diff != "" {
				t.Errorf("Format -want +got:\n%s", diff)
			}
		})
	}
}

// testEncodings checks that text in an encoding with NUL bytes is not read, and that the error names the encoding.
func testEncodings(t *testing.T, b *backend.Backend) {
	for content, want := range map[string]string{
		"\xff\xfea\x00": "UTF-16", "\xfe\xff\x00a": "UTF-16",
		"\xff\xfe\x00\x00a\x00\x00\x00": "UTF-32", "\x00\x00\xfe\xff\x00\x00\x00a": "UTF-32",
	} {
		put(t, b, "f", content)
		_, read := b.Read(t.Context(), "f", backend.Window{})
		_, edit := b.Edit(t.Context(), "f", backend.Edit{Old: "a", New: "b"})
		for _, err := range []error{read, edit} {
			var encoded *backend.EncodingError
			if !errors.As(err, &encoded) || encoded.Encoding != want || !errors.Is(err, backend.ErrBinary) {
				t.Errorf("%q: error %v, want that it is %s", content, err, want)
			}
		}
	}
}

func testReadErrors(t *testing.T, b *backend.Backend) {
	put(t, b, "dir/f", "a\n")
	put(t, b, "binary", "GIF8\x00\x01")
	for path, want := range map[string]error{
		"none":     backend.ErrNotFound,
		"dir/none": backend.ErrNotFound,
		"dir":      backend.ErrIsDir,
		".":        backend.ErrIsDir,
		"dir/f/x":  backend.ErrNotDir,
		"binary":   backend.ErrBinary,
	} {
		_, err := b.Read(t.Context(), path, backend.Window{Limit: 1})
		wantError(t, "Read "+path, err, want)
	}
}

func testWrite(t *testing.T, b *backend.Backend) {
	write := func(path, content string) (backend.Written, error) {
		return b.Write(t.Context(), path, []byte(content), backend.Any)
	}
	got, err := write("new/deep/f", "one\n")
	if diff := cmp.Diff(backend.Written{Created: true, Bytes: 4}, got, ignoreVersion); diff != "" || err != nil {
		t.Errorf("Write of a new file: error %v, -want +got:\n%s", err, diff)
	}
	got, err = write("new/deep/f", "two\n2\n")
	if diff := cmp.Diff(backend.Written{Bytes: 6}, got, ignoreVersion); diff != "" || err != nil {
		t.Errorf("Write of a file that is there: error %v, -want +got:\n%s", err, diff)
	}
	page, err := b.Read(t.Context(), "new/deep/f", backend.Window{Limit: 9})
	if diff := cmp.Diff([]string{"two", "2"}, page.Lines); diff != "" || err != nil {
		t.Errorf("Read after Write: error %v, -want +got:\n%s", err, diff)
	}
	_, err = write("new", "x")
	wantError(t, "Write over a directory", err, backend.ErrIsDir)
	_, err = write("new/deep/f/x", "x")
	wantError(t, "Write below a file", err, backend.ErrNotDir)
}

func testVersions(t *testing.T, b *backend.Backend) {
	write := func(content string, when backend.Version) error {
		_, err := b.Write(t.Context(), "f", []byte(content), when)
		return err
	}
	wantError(t, "Write to a version of a file that does not exist", write("x", "0123"), backend.ErrChanged)
	wantError(t, "Write of a new file", write("one", backend.Absent), nil)
	wantError(t, "Write of a new file, repeated", write("one", backend.Absent), nil)
	wantError(t, "Write of another new file", write("two", backend.Absent), backend.ErrExists)

	page, err := b.Read(t.Context(), "f", backend.Window{Limit: 1})
	wantError(t, "Read", err, nil)
	wantError(t, "Write to the version read", write("two", page.Version), nil)
	wantError(t, "Write to the version read, repeated", write("two", page.Version), nil)
	wantError(t, "Write to an old version", write("three", page.Version), backend.ErrChanged)

	_, err = b.Edit(t.Context(), "f", backend.Edit{Old: "two", New: "three", When: page.Version})
	wantError(t, "Edit of an old version", err, backend.ErrChanged)
	edited, err := b.Edit(t.Context(), "f", backend.Edit{Old: "two", New: "three"})
	wantError(t, "Edit of any version", err, nil)
	if again := put(t, b, "g", "three"); edited.Version != again {
		t.Errorf("the same content has the versions %q and %q", edited.Version, again)
	}
}

// edits are edits of a file that succeed.
var edits = map[string]struct {
	before string
	edit   backend.Edit
	after  string
	want   backend.Edited
}{
	"a unique text": {
		before: "a\nb\nc\n", edit: backend.Edit{Old: "b", New: "B"},
		after: "a\nB\nc\n", want: backend.Edited{Replaced: 1, Line: 2},
	},
	"every occurrence": {
		before: "x = x\nx\n", edit: backend.Edit{Old: "x", New: "yy", All: true},
		after: "yy = yy\nyy\n", want: backend.Edited{Replaced: 3, Line: 1},
	},
	"occurrences do not overlap": {
		before: "aaaa", edit: backend.Edit{Old: "aa", New: "b", All: true},
		after: "bb", want: backend.Edited{Replaced: 2, Line: 1},
	},
	"a text is taken out": {
		before: "a\nb\n", edit: backend.Edit{Old: "a\n"},
		after: "b\n", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"an empty file is filled": {
		edit:  backend.Edit{New: "a\n"},
		after: "a\n", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"the new text is not a pattern": {
		before: "a", edit: backend.Edit{Old: "a", New: `$0 \1 &`},
		after: `$0 \1 &`, want: backend.Edited{Replaced: 1, Line: 1},
	},
	"line ends of Windows stay": {
		before: "a\r\nb\r\nc\r\n", edit: backend.Edit{Old: "a\nb\n", New: "1\n2\n3\n"},
		after: "1\r\n2\r\n3\r\nc\r\n", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"new lines take the line ends of the file": {
		before: "a\r\nb\r\n", edit: backend.Edit{Old: "b", New: "b\nc"},
		after: "a\r\nb\r\nc\r\n", want: backend.Edited{Replaced: 1, Line: 2},
	},
	"mixed line ends stay mixed": {
		before: "a\r\nb\nc\nd\r\n", edit: backend.Edit{Old: "b\nc", New: "x\ny"},
		after: "a\r\nx\ny\nd\r\n", want: backend.Edited{Replaced: 1, Line: 2},
	},
	"line ends of Windows that are given are taken for plain ones": {
		before: "a\nb\n", edit: backend.Edit{Old: "a\r\n", New: "1\r\n2\r\n"},
		after: "1\n2\nb\n", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"a file without a line end takes those of the new text": {
		before: "a", edit: backend.Edit{Old: "a", New: "1\r\n2"},
		after: "1\r\n2", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"bytes that are not UTF-8 stay": {
		before: "caf\xe9 a\xff\n", edit: backend.Edit{Old: "a", New: "\ufffd", All: true},
		after: "c\ufffdf\xe9 \ufffd\xff\n", want: backend.Edited{Replaced: 2, Line: 1},
	},
	"a byte order mark stays": {
		before: "\ufeffa\nb\n", edit: backend.Edit{Old: "a\n", New: "c\n"},
		after: "\ufeffc\nb\n", want: backend.Edited{Replaced: 1, Line: 1},
	},
	"a missing last line end stays missing": {
		before: "a\nb", edit: backend.Edit{Old: "a", New: "c"},
		after: "c\nb", want: backend.Edited{Replaced: 1, Line: 1},
	},
}

func testEdit(t *testing.T, b *backend.Backend) {
	for name, tc := range edits {
		t.Run(name, func(t *testing.T) {
			put(t, b, "f", tc.before)
			got, err := b.Edit(t.Context(), "f", tc.edit)
			if err != nil {
				t.Fatalf("Edit: %v", err)
			}
			if diff := cmp.Diff(tc.want, got, ignoreVersion); diff != "" {
				t.Errorf("Edit() -want +got:\n%s", diff)
			}
			// The version is of the content to the byte.
			if want := put(t, b, "want", tc.after); got.Version != want {
				t.Errorf("the content after the edit is not %q", tc.after)
			}
		})
	}
}

func testEditErrors(t *testing.T, b *backend.Backend) {
	put(t, b, "dir/f", "same\nsame\n  indented\nlast")
	edit := func(path, old, fresh string) error {
		_, err := b.Edit(t.Context(), path, backend.Edit{Old: old, New: fresh})
		return err
	}
	wantError(t, "Edit of nothing", edit("none", "a", "b"), backend.ErrNotFound)
	wantError(t, "Edit of a directory", edit("dir", "a", "b"), backend.ErrIsDir)
	wantError(t, "Edit that changes nothing", edit("dir/f", "last", "last"), backend.ErrIdentical)
	wantError(t, "Edit that changes only line ends", edit("dir/f", "same\n", "same\r\n"), backend.ErrLineEnds)

	var several *backend.NotUniqueError
	if err := edit("dir/f", "same", "x"); !errors.As(err, &several) {
		t.Fatalf("Edit of a text that is there twice: %v", err)
	}
	if diff := cmp.Diff(&backend.NotUniqueError{Count: 2, Lines: []int{1, 2}}, several); diff != "" {
		t.Errorf("NotUniqueError -want +got:\n%s", diff)
	}
	put(t, b, "dashes", "----")
	if err := edit("dashes", "---", "x"); !errors.As(err, &several) {
		t.Fatalf("Edit of a text that overlaps with itself: %v", err)
	}
	if diff := cmp.Diff(&backend.NotUniqueError{Count: 2, Lines: []int{1, 1}}, several); diff != "" {
		t.Errorf("NotUniqueError -want +got:\n%s", diff)
	}
	for old, want := range map[string]*backend.NoMatchError{
		"nowhere":                 {},
		"":                        {},
		"last\n":                  {Hint: backend.HintFinalNewline, Count: 1},
		"\tindented":              {Hint: backend.HintWhitespace, Line: 3},
		"same \nsame\nindented\n": {Hint: backend.HintWhitespace, Line: 1},
		"2\tsame\n3\tindented":    {Hint: backend.HintLineNumbers, Line: 2},
	} {
		var none *backend.NoMatchError
		if err := edit("dir/f", old, "x"); !errors.As(err, &none) {
			t.Fatalf("Edit of %q: %v", old, err)
		}
		if diff := cmp.Diff(want, none); diff != "" {
			t.Errorf("NoMatchError of %q -want +got:\n%s", old, diff)
		}
	}
}

// testEditsOfOne checks that concurrent edits of one file all take effect.
func testEditsOfOne(t *testing.T, b *backend.Backend) {
	const writers = 20
	var before strings.Builder
	for i := range writers {
		fmt.Fprintf(&before, "<%d>\n", i)
	}
	put(t, b, "f", before.String())
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			_, err := b.Edit(t.Context(), "f", backend.Edit{Old: fmt.Sprintf("<%d>", i), New: "done"})
			if err != nil {
				t.Errorf("Edit: %v", err)
			}
		})
	}
	all.Wait()
	page, err := b.Read(t.Context(), "f", backend.Window{Limit: writers})
	if err != nil || strings.Join(page.Lines, " ") != strings.TrimSpace(strings.Repeat("done ", writers)) {
		t.Errorf("after %d edits: %v, error %v", writers, page.Lines, err)
	}
}
