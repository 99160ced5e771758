package backend

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
)

// content makes a file of random pieces: all kinds of line ends and repeated
// text, with or without a byte order mark.
func content(mark bool, picks []byte) string {
	pieces := []string{"a", "b", "ab", "é", " ", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n"}
	var b strings.Builder
	if mark {
		b.WriteString("\ufeff")
	}
	for _, p := range picks {
		b.WriteString(pieces[int(p)%len(pieces)])
	}
	return b.String()
}

// What a file has around the replaced text stays, to the byte.
func TestReplaceKeepsAllOtherBytes(t *testing.T) {
	property := func(mark bool, before, after []byte) bool {
		head, tail := content(mark, before), content(false, after)
		out, _, err := replaceText([]byte(head+"UNIQUE"+tail), Edit{Old: "UNIQUE", New: "other"})
		return err == nil && string(out) == head+"other"+tail
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// What is shown of a file can be replaced, and replacing it back restores the
// file, as long as its line ends are of one kind.
func TestReplaceThereAndBack(t *testing.T) {
	property := func(windows bool, before, middle []byte) bool {
		plain := strings.ReplaceAll(content(false, before), "\r", "") + "<" + strings.ReplaceAll(content(false, middle), "\r", "") + ">\n"
		file := plain
		if windows {
			file = strings.ReplaceAll(plain, "\n", "\r\n")
		}
		shown := plain[strings.Index(plain, "<"):]
		there, _, err := replaceText([]byte(file), Edit{Old: shown, New: "<>\n"})
		if errors.Is(err, ErrIdentical) {
			return true
		}
		if err != nil {
			return false
		}
		back, _, err := replaceText(there, Edit{Old: "<>\n", New: shown})
		return err == nil && string(back) == file
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// Writing back what Read shows leaves a file as it was, as long as its line ends
// are of one kind.
func TestWithFormatRestoresWhatPageHides(t *testing.T) {
	property := func(mark, windows bool, picks []byte) bool {
		file := strings.ReplaceAll(content(mark, picks), "\r", "")
		if windows {
			file = strings.ReplaceAll(file, "\n", "\r\n")
		}
		page, err := readPage(strings.NewReader(file), Window{Limit: MaxLines})
		shown := strings.Join(page.Lines, "\n")
		if strings.HasSuffix(file, "\n") {
			shown += "\n"
		}
		return err == nil && (shown == "" || page.Format.Apply(shown) == file)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestReplaceKeepsInvalidText(t *testing.T) {
	got, _, err := replaceText([]byte("caf\xe9 one\r\ntwo\r\n"), Edit{Old: "one", New: "1"})
	if want := "caf\xe9 1\r\ntwo\r\n"; err != nil || string(got) != want {
		t.Errorf("replaceText() = %q, error %v; want %q", got, err, want)
	}
}

func TestNotUniqueNamesTenLinesAtMost(t *testing.T) {
	_, _, err := replaceText([]byte(strings.Repeat("x\n", 30)), Edit{Old: "x", New: "y"})
	var several *NotUniqueError
	if !errors.As(err, &several) {
		t.Fatalf("error %v, want a NotUniqueError", err)
	}
	want := &NotUniqueError{Count: 30, Lines: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	if diff := cmp.Diff(want, several); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Pages laid side by side are the file.
func TestPagesCoverTheFile(t *testing.T) {
	property := func(picks []byte, limit uint8) bool {
		file := content(false, picks)
		var lines []string
		for {
			p, err := readPage(strings.NewReader(file), Window{Offset: len(lines), Limit: int(limit)})
			if err != nil || p.Version != versionOf([]byte(file)) {
				return false
			}
			if len(p.Lines) == 0 {
				return p.Start == 0 && p.Total == len(lines) && strings.Join(lines, "\n") == shown(file)
			}
			if p.Start != len(lines)+1 {
				return false
			}
			lines = append(lines, p.Lines...)
		}
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// shown is a file as its lines joined.
func shown(file string) string {
	return strings.TrimSuffix(strings.ReplaceAll(file, "\r\n", "\n"), "\n")
}

// Patterns that could be tried in very many ways come to an end. Nothing can
// interrupt a match, so one that does not would hang the test.
func TestGlobEnds(t *testing.T) {
	name := strings.Repeat("a", 250) + "/" + strings.Repeat("a/", 100) + "b"
	for _, pattern := range []string{
		strings.Repeat("{a,}", 6) + "/x",
		strings.Repeat("*a", 100) + "/**/x",
		strings.Repeat("**/", 100) + "x",
		strings.Repeat("**/a*", 100) + "x",
		"{a,aa,aaa,aaaa,aaaaa,aaaaaa}{a,aa,aaa,aaaa,aaaaa,aaaaaa}{a,aa,aaa,aaaa}{a,aa,aaa,aaaa}*/**/x",
	} {
		g, err := compileGlob(pattern)
		if err != nil {
			t.Errorf("compileGlob(%q): %v", pattern, err)
			continue
		}
		g.match(name)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("**/*.{go,md}", "a/b.go")
	f.Add("../x", "x")
	f.Add("[a-", "a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := compileGlob(pattern)
		if err != nil {
			return
		}
		g.match(name)
		if _, err := Clean(g.start); err != nil {
			t.Errorf("Start of %q is %q: %v", pattern, g.start, err)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a/b", "../x", "/", "~", "./~", "a/./b//", `a\..\b`, "a\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean, err := Clean(name)
		if err != nil {
			return
		}
		if again, err := Clean(clean); err != nil || again != clean {
			t.Errorf("Clean(%q) = %q, which cleans to %q, error %v", name, clean, again, err)
		}
		if strings.HasPrefix(clean, "/") || strings.HasPrefix(clean, "~") || strings.Contains("/"+clean+"/", "/../") {
			t.Errorf("Clean(%q) = %q", name, clean)
		}
	})
}

func TestCompareOrdersAsATreeIsRead(t *testing.T) {
	ordered := []string{".", "a", "a/b", "a/b/c", "a/b-c", "a-b", "a.b", "b"}
	for i, a := range ordered {
		for j, b := range ordered {
			got, want := Compare(a, b), 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got != want {
				t.Errorf("Compare(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func BenchmarkFind(b *testing.B) {
	data := bytes.Repeat([]byte("func (r *Reconciler) Reconcile(ctx context.Context) error {\n"), 10_000)
	for name, q := range map[string]Query{
		"literal":    {Pattern: "nowhere"},
		"expression": {Pattern: `func \w+\(`},
	} {
		b.Run(name, func(b *testing.B) {
			p, err := compilePattern(q)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				p.find(data, 1, func(int, []byte) bool { return true })
			}
		})
	}
}

// How a file is cut into chunks does not change what is found in it.
func TestASearchInChunksFindsWhatASearchInTheWholeFinds(t *testing.T) {
	lines := []string{"", "needle", "a needle in a line", "nothing", "\r", "needle\r", strings.Repeat("x", 300)}
	property := func(picks []byte, mark, end bool, chunk uint16, byFile bool) bool {
		var file strings.Builder
		if mark {
			file.WriteString("\ufeff")
		}
		for i, p := range picks {
			if i > 0 {
				file.WriteString("\n")
			}
			file.WriteString(lines[int(p)%len(lines)])
		}
		if end {
			file.WriteString("\n")
		}
		data := []byte(file.String())
		for _, pattern := range []string{"needle", "^needle$", "n.edle|^$", "", "needle\n"} {
			whole, chunked := newSearch(t, pattern, byFile), newSearch(t, pattern, byFile)
			run := func(s *lineSearch, size int) error {
				src := &source{from: bytes.NewReader(data), left: int64(len(data))}
				f := fileSearch{search: s, name: "f", line: 1, first: -1}
				return f.run(t.Context(), src, make([]byte, size))
			}
			wantErr, err := run(whole, len(data)+1), run(chunked, 3+int(chunk)%400)
			if diff := cmp.Diff(whole.found, chunked.found); diff != "" || !errors.Is(err, wantErr) {
				t.Logf("%q in %q: %v, want %v\n%s", pattern, data, err, wantErr, diff)
				return false
			}
		}
		return true
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func newSearch(t *testing.T, pattern string, byFile bool) *lineSearch {
	t.Helper()
	s, err := newLineSearch(Query{Pattern: pattern, ByFile: byFile, Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
