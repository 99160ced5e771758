package backendtest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

func testList(t *testing.T, b *backend.Backend) {
	tree(t, b, "b.txt", "a/deep/f", "c")
	got, err := b.List(t.Context(), ".")
	want := []backend.Info{{Path: "a", Dir: true}, {Path: "b.txt", Size: 6}, {Path: "c", Size: 2}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(backend.Info{}, "ModTime")); diff != "" || err != nil {
		t.Errorf("List of the root: error %v, -want +got:\n%s", err, diff)
	}
	got, err = b.List(t.Context(), "a")
	if diff := cmp.Diff([]string{"a/deep"}, paths(got)); diff != "" || err != nil {
		t.Errorf("List: error %v, -want +got:\n%s", err, diff)
	}
	_, err = b.List(t.Context(), "none")
	wantError(t, "List of nothing", err, backend.ErrNotFound)
	_, err = b.List(t.Context(), "c")
	wantError(t, "List of a file", err, backend.ErrNotDir)
}

func testGlob(t *testing.T, b *backend.Backend) {
	tree(t, b, "a.py", "sub/b.py", "sub/nested/c.py", "readme.md", ".hidden.py", ".hidden/x.py",
		".hidden/nested/y.py", ".github/workflows/ci.yml", ".git/z.py", "sub/.git/z.py", "sub-b/d.txt")
	cases := map[string]struct {
		pattern, dir string
		want         []string
	}{
		"a bare name matches at any depth": {
			"*.py", ".",
			[]string{".hidden/nested/y.py", ".hidden/x.py", "a.py", "sub/b.py", "sub/nested/c.py"},
		},
		"below a directory":                    {"*.py", "sub", []string{"sub/b.py", "sub/nested/c.py"}},
		"a leading slash anchors":              {"/*.py", ".", []string{"a.py"}},
		"so it does below a directory":         {"/*.py", "sub", []string{"sub/b.py"}},
		"a dot and slash anchor":               {"./*.py", ".", []string{"a.py"}},
		"two stars do not enter hidden places": {"**/*.py", ".", []string{"a.py", "sub/b.py", "sub/nested/c.py"}},
		"two stars stand for no directory too": {"sub/**/*.py", ".", []string{"sub/b.py", "sub/nested/c.py"}},
		"one star stays in its directory":      {"sub/*.py", ".", []string{"sub/b.py"}},
		"a dot that is said is matched":        {".*.py", ".", []string{".hidden.py"}},
		"a hidden directory that is said":      {".github/**/*.yml", ".", []string{".github/workflows/ci.yml"}},
		"hidden directories not said":          {"**/*.yml", ".", nil},
		"a hidden directory, one level":        {".hidden/*.py", ".", []string{".hidden/x.py"}},
		"git's own files when they are said":   {".git/*", ".", []string{".git/z.py"}},
		"alternatives":                         {"*.{md,txt}", ".", []string{"readme.md", "sub-b/d.txt"}},
		"one character":                        {"?.py", "sub", []string{"sub/b.py", "sub/nested/c.py"}},
		"a class":                              {"[ab].py", "", []string{"a.py", "sub/b.py"}},
		"a negated class":                      {"[!ab].py", ".", []string{".hidden/nested/y.py", ".hidden/x.py", "sub/nested/c.py"}},
		"a whole path":                         {"sub/b.py", ".", []string{"sub/b.py"}},
		"a directory means what is in it":      {"sub/", ".", []string{"sub/b.py", "sub/nested/c.py"}},
		"a file is no directory":               {"a.py/**", ".", nil},
		"nor where a pattern means it":         {"*.py/**", ".", nil},
		"directories are not files":            {"nested", ".", nil},
		"a place that does not exist":          {"none/*.py", ".", nil},
		"trees are read in order":              {"s*/**", ".", []string{"sub/b.py", "sub/nested/c.py", "sub-b/d.txt"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := b.Glob(t.Context(), tc.pattern, tc.dir, nil)
			if err != nil {
				t.Fatalf("Glob: %v", err)
			}
			if diff := cmp.Diff(tc.want, paths(got.Items), cmpopts.EquateEmpty()); diff != "" || got.Truncated {
				t.Errorf("Glob(%q, %q), truncated %v, -want +got:\n%s", tc.pattern, tc.dir, got.Truncated, diff)
			}
		})
	}
}

// testSkip checks that skipped files are not found, and do not count towards the bound.
func testSkip(t *testing.T, b *backend.Backend) {
	tree(t, b, "a/x.txt", "a/y.txt", "b.txt", "c.txt")
	all, err := b.Glob(t.Context(), "*.txt", ".", nil)
	if err != nil {
		t.Fatalf("Glob: %v", err)
	}
	below := func(at string) bool { return strings.HasPrefix(at, "a/") }
	var skipped []backend.Info
	var mu sync.Mutex
	found, err := b.Glob(t.Context(), "*.txt", ".", func(info backend.Info) bool {
		mu.Lock()
		defer mu.Unlock()
		skipped = append(skipped, info)
		return below(info.Path)
	})
	if diff := cmp.Diff([]string{"b.txt", "c.txt"}, paths(found.Items)); diff != "" || err != nil {
		t.Errorf("Glob that skips: error %v, -want +got:\n%s", err, diff)
	}
	slices.SortFunc(skipped, func(a, b backend.Info) int { return backend.Compare(a.Path, b.Path) })
	if diff := cmp.Diff(all.Items, skipped); diff != "" {
		t.Errorf("Glob asks about, -want +got:\n%s", diff)
	}
	greps(t, b, backend.Query{Pattern: ".", Glob: "*.txt", ByFile: true, Limit: 2, Skip: below}, backend.Matches{Items: []backend.Match{
		{Path: "b.txt", Line: 1, Text: "b.txt", Count: 1}, {Path: "c.txt", Line: 1, Text: "c.txt", Count: 1},
	}})
	put(t, b, "a/binary.txt", "\x00")
	for _, pattern := range []string{".", "nothing like this"} {
		testSkipped(t, b, backend.Query{Pattern: pattern, Glob: "*.txt"}, "a/binary.txt", "a/x.txt", "a/y.txt", "b.txt", "c.txt")
		testSkipped(t, b, backend.Query{Pattern: pattern, Dir: "a/x.txt"}, "a/x.txt")
		testSkipped(t, b, backend.Query{Pattern: pattern, Dir: "a/binary.txt"}, "a/binary.txt")
	}
}

// testSkipped checks which files a search passes to Query.Skip. All are skipped, so the search must find nothing.
func testSkipped(t *testing.T, b *backend.Backend, q backend.Query, want ...string) {
	t.Helper()
	var skipped []string
	var mu sync.Mutex
	q.Skip = func(at string) bool {
		mu.Lock()
		defer mu.Unlock()
		skipped = append(skipped, at)
		return true
	}
	found, err := b.Grep(t.Context(), q)
	slices.Sort(skipped)
	if diff := cmp.Diff(want, slices.Compact(skipped)); diff != "" || err != nil || len(found.Items) > 0 {
		t.Errorf("Grep(%q in %q) finds %v, error %v; it asks about, -want +got:\n%s", q.Pattern, q.Dir, found.Items, err, diff)
	}
}

func testGlobErrors(t *testing.T, b *backend.Backend) {
	tree(t, b, "f")
	for _, pattern := range []string{"../*", "a/../../*", "{..,a}/*", "/../etc/*"} {
		_, err := b.Glob(t.Context(), pattern, ".", nil)
		wantError(t, "Glob "+pattern, err, backend.ErrEscapes)
	}
	for _, pattern := range []string{"[a", "{a", strings.Repeat("{a,b}", 20), strings.Repeat("a", backend.MaxPattern+1)} {
		var wrong *backend.PatternError
		if _, err := b.Glob(t.Context(), pattern, ".", nil); !errors.As(err, &wrong) {
			t.Errorf("Glob(%q): error %v, want a PatternError", pattern, err)
		}
	}
	_, err := b.Glob(t.Context(), "*", "none", nil)
	wantError(t, "Glob in a place that does not exist", err, backend.ErrNotFound)
	_, err = b.Glob(t.Context(), "*", "f", nil)
	wantError(t, "Glob in a file", err, backend.ErrNotDir)
}

func testGrep(t *testing.T, b *backend.Backend) {
	put(t, b, "a.go", "package a\n\nfunc Foo() {}\r\nfunc foo() {}")
	put(t, b, "sub/b.go", "a.b\nazb\nfunc Bar() {}\n")
	put(t, b, "sub/c.txt", "func in text\n")
	put(t, b, "binary", "func\x00")
	put(t, b, ".git/config", "func\n")
	cases := map[string]struct {
		query backend.Query
		want  []backend.Match
	}{
		"an expression, in order": {
			query: backend.Query{Pattern: `^func \w+\(`},
			want: []backend.Match{
				{Path: "a.go", Line: 3, Text: "func Foo() {}"},
				{Path: "a.go", Line: 4, Text: "func foo() {}"},
				{Path: "sub/b.go", Line: 3, Text: "func Bar() {}"},
			},
		},
		"plain text": {
			query: backend.Query{Pattern: "Foo"},
			want:  []backend.Match{{Path: "a.go", Line: 3, Text: "func Foo() {}"}},
		},
		"a dot matches any character": {
			query: backend.Query{Pattern: "a.b"},
			want:  []backend.Match{{Path: "sub/b.go", Line: 1, Text: "a.b"}, {Path: "sub/b.go", Line: 2, Text: "azb"}},
		},
		"unless the text is fixed": {
			query: backend.Query{Pattern: "a.b", Fixed: true},
			want:  []backend.Match{{Path: "sub/b.go", Line: 1, Text: "a.b"}},
		},
		"case is ignored when asked": {
			query: backend.Query{Pattern: "FOO", Fixed: true, IgnoreCase: true},
			want:  []backend.Match{{Path: "a.go", Line: 3, Text: "func Foo() {}"}, {Path: "a.go", Line: 4, Text: "func foo() {}"}},
		},
		"the end of a line is before its line end": {
			query: backend.Query{Pattern: `Foo.*\}$`},
			want:  []backend.Match{{Path: "a.go", Line: 3, Text: "func Foo() {}"}},
		},
		"below a directory, files of a name": {
			query: backend.Query{Pattern: "func", Dir: "sub", Glob: "*.txt"},
			want:  []backend.Match{{Path: "sub/c.txt", Line: 1, Text: "func in text"}},
		},
		"in one file": {
			query: backend.Query{Pattern: "func", Dir: "sub/c.txt"},
			want:  []backend.Match{{Path: "sub/c.txt", Line: 1, Text: "func in text"}},
		},
		"by file": {
			query: backend.Query{Pattern: "func", ByFile: true},
			want: []backend.Match{
				{Path: "a.go", Line: 3, Text: "func Foo() {}", Count: 2},
				{Path: "sub/b.go", Line: 3, Text: "func Bar() {}", Count: 1},
				{Path: "sub/c.txt", Line: 1, Text: "func in text", Count: 1},
			},
		},
		"nothing": {query: backend.Query{Pattern: "nowhere"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { greps(t, b, tc.query, backend.Matches{Items: tc.want}) })
	}
}

// testGrepBounds checks that the result of Grep is bounded, and is marked as truncated only if there were more matches.
func testGrepBounds(t *testing.T, b *backend.Backend) {
	put(t, b, "a.go", "package a\n\nfunc Foo() {}\r\nfunc foo() {}")
	put(t, b, "long", strings.Repeat("é", 3000)+"needle"+strings.Repeat("é", 3000)+"\n")
	cases := map[string]struct {
		query     backend.Query
		want      []backend.Match
		truncated bool
	}{
		"as many as asked": {
			query:     backend.Query{Pattern: "func", Limit: 1},
			want:      []backend.Match{{Path: "a.go", Line: 3, Text: "func Foo() {}"}},
			truncated: true,
		},
		"exactly as many as there are": {
			query: backend.Query{Pattern: "Foo", Limit: 1},
			want:  []backend.Match{{Path: "a.go", Line: 3, Text: "func Foo() {}"}},
		},
		"an expression that matches every line, empty ones too": {
			query: backend.Query{Pattern: "", Dir: "a.go", Limit: 2},
			want:  []backend.Match{{Path: "a.go", Line: 1, Text: "package a"}, {Path: "a.go", Line: 2}}, truncated: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			greps(t, b, tc.query, backend.Matches{Items: tc.want, Truncated: tc.truncated})
		})
	}
	got, err := b.Grep(t.Context(), backend.Query{Pattern: "needle"})
	if err != nil || len(got.Items) != 1 || len(got.Items[0].Text) > backend.MaxMatchText ||
		!strings.Contains(got.Items[0].Text, "éneedleé") {
		t.Errorf("Grep in a long line shows %+v, error %v", got.Items, err)
	}
}

// greps checks the result of Grep.
func greps(t *testing.T, b *backend.Backend, q backend.Query, want backend.Matches) {
	t.Helper()
	got, err := b.Grep(t.Context(), q)
	if err != nil {
		t.Fatalf("Grep: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("Grep() -want +got:\n%s", diff)
	}
}

func testGrepErrors(t *testing.T, b *backend.Backend) {
	put(t, b, "binary", "func\x00")
	for _, pattern := range []string{"(", `(?<!a)b`, "a{2000}", strings.Repeat("a", backend.MaxPattern+1)} {
		var wrong *backend.PatternError
		if _, err := b.Grep(t.Context(), backend.Query{Pattern: pattern}); !errors.As(err, &wrong) {
			t.Errorf("Grep(%q): error %v, want a PatternError", pattern, err)
		}
	}
	_, err := b.Grep(t.Context(), backend.Query{Pattern: "a", Dir: "none"})
	wantError(t, "Grep in a place that does not exist", err, backend.ErrNotFound)
	_, err = b.Grep(t.Context(), backend.Query{Pattern: "a", Dir: "binary"})
	wantError(t, "Grep in a binary file", err, backend.ErrBinary)
	_, err = b.Grep(t.Context(), backend.Query{Pattern: "a", Glob: "../*"})
	wantError(t, "Grep in files above", err, backend.ErrEscapes)
}
