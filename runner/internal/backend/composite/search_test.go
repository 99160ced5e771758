package composite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

func TestListShowsWhatLeadsToMounts(t *testing.T) {
	work := onDisk(t)
	put(t, work, "vendor/hidden", "x")
	put(t, work, "a-file", "x")
	put(t, work, "lib/own", "x")
	c := mounted(
		t,
		Mount{Path: "/workspace", Driver: work},
		Mount{Path: "/workspace/vendor", Driver: inMemory()},
		Mount{Path: "/workspace/lib/x/y", Driver: inMemory()},
		Mount{Path: "/workspace/lib/x/z", Driver: inMemory()},
		Mount{Path: "/far/away", Driver: inMemory()},
	)
	put(t, c, "workspace/vendor/seen", "x")
	for dir, want := range map[string]string{
		".":                "far/ workspace/",
		"far":              "far/away/",
		"workspace":        "workspace/a-file workspace/lib/ workspace/vendor/",
		"workspace/vendor": "workspace/vendor/seen",
		"workspace/lib":    "workspace/lib/own workspace/lib/x/",
		"workspace/lib/x":  "workspace/lib/x/y/ workspace/lib/x/z/",
		"far/away":         "",
	} {
		infos, err := over(c).List(t.Context(), dir)
		var names []string
		for _, i := range infos {
			name := i.Path
			if i.Dir {
				name += "/"
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("List(%q) = %q, error %v, want %q", dir, got, err, want)
		}
	}
}

func TestGlobAcrossMounts(t *testing.T) {
	c := four(t, "workspace/a.md", "workspace/src/b.md", "workspace/src/tmp/c.md", "tmp/a.md", "tmp/.hidden/d.md", "memories/x/src/e.md")
	cases := map[string]struct {
		pattern, dir string
		want         string
	}{
		"a bare name, everywhere, in order": {
			"*.md", ".",
			"memories/x/src/e.md tmp/.hidden/d.md tmp/a.md workspace/a.md workspace/src/b.md workspace/src/tmp/c.md",
		},
		"two stars, before the mount and after": {"**/src/*.md", ".", "memories/x/src/e.md workspace/src/b.md"},
		"a place that is said":                  {"workspace/*.md", ".", "workspace/a.md"},
		"anchored":                              {"/tmp/*.md", ".", "tmp/a.md"},
		"nothing is beside the mounts":          {"/*.md", ".", ""},
		"a star for a place":                    {"*/a.md", ".", "tmp/a.md workspace/a.md"},
		"alternatives of places":                {"{tmp,workspace}/a.md", ".", "tmp/a.md workspace/a.md"},
		"alternatives with slashes":             {"{workspace/src,tmp}/*.md", ".", "tmp/a.md workspace/src/b.md"},
		"nested alternatives":                   {"{workspace/{src,none},x/{y}}/b.md", ".", "workspace/src/b.md"},
		"two stars may stand for the place":     {"**/a.md", ".", "tmp/a.md workspace/a.md"},
		"a name that is a place too":            {"**/tmp/*.md", ".", "tmp/a.md workspace/src/tmp/c.md"},
		"a directory means what is in it":       {"workspace/src/", ".", "workspace/src/b.md workspace/src/tmp/c.md"},
		"a place means what is in it":           {"tmp/", ".", "tmp/a.md"},
		"many stars are as good as two":         {"**/**/**/a.md", ".", "tmp/a.md workspace/a.md"},
		"from a place on":                       {"*.md", "workspace/src", "workspace/src/b.md workspace/src/tmp/c.md"},
		"a place alone is no file":              {"tmp", ".", ""},
		"hidden directories that are said":      {"tmp/.hidden/*", ".", "tmp/.hidden/d.md"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(globbed(t, c, tc.pattern, tc.dir), " "); got != tc.want {
				t.Errorf("Glob(%q, %q) = %q, want %q", tc.pattern, tc.dir, got, tc.want)
			}
		})
	}
}

func TestGrepAcrossMounts(t *testing.T) {
	c := four(t)
	put(t, c, "workspace/a", "hit\nmiss\nhit\n")
	put(t, c, "memories/b", "hit\n")
	put(t, c, "tmp/c", "hit\n")
	cases := map[string]struct {
		query backend.Query
		want  string
	}{
		"in order, with whole paths": {backend.Query{Pattern: "hit"}, "memories/b:1 tmp/c:1 workspace/a:1 workspace/a:3"},
		"as many as asked":           {backend.Query{Pattern: "hit", Limit: 3}, "memories/b:1 tmp/c:1 workspace/a:1 ..."},
		"as many as there are":       {backend.Query{Pattern: "hit", Limit: 4}, "memories/b:1 tmp/c:1 workspace/a:1 workspace/a:3"},
		"one place":                  {backend.Query{Pattern: "hit", Dir: "tmp"}, "tmp/c:1"},
		"one file":                   {backend.Query{Pattern: "hit", Dir: "workspace/a"}, "workspace/a:1 workspace/a:3"},
		"files of a pattern":         {backend.Query{Pattern: "hit", Glob: "{tmp,memories}/*"}, "memories/b:1 tmp/c:1"},
		"by file":                    {backend.Query{Pattern: "hit", ByFile: true}, "memories/b:1 tmp/c:1 workspace/a:1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found, err := over(c).Grep(t.Context(), tc.query)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found.Items {
				got = append(got, fmt.Sprintf("%s:%d", m.Path, m.Line))
			}
			if found.Truncated {
				got = append(got, "...")
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("Grep -want +got:\n%s", diff)
			}
		})
	}
}

func TestSearchesDoNotSeeWhatAMountHides(t *testing.T) {
	work := inMemory()
	put(t, work, "vendor/f", "hit")
	put(t, work, "f", "hit")
	c := mounted(t, Mount{Path: "/w", Driver: work}, Mount{Path: "/w/vendor", Driver: inMemory()})
	put(t, c, "w/vendor/g", "hit")
	if diff := cmp.Diff([]string{"w/f", "w/vendor/g"}, globbed(t, c, "*", ".")); diff != "" {
		t.Errorf("Glob -want +got:\n%s", diff)
	}
	found, err := over(c).Grep(t.Context(), backend.Query{Pattern: "hit", ByFile: true})
	want := []backend.Match{{Path: "w/f", Line: 1, Text: "hit", Count: 1}, {Path: "w/vendor/g", Line: 1, Text: "hit", Count: 1}}
	if diff := cmp.Diff(want, found.Items); diff != "" || err != nil {
		t.Errorf("Grep: error %v, -want +got:\n%s", err, diff)
	}
}

func TestAllLimitsAreOfTheWhole(t *testing.T) {
	c := four(t)
	for i := range backend.MaxFound/2 + 1 {
		put(t, c, fmt.Sprintf("tmp/%04d", i), "hit\n")
		put(t, c, fmt.Sprintf("memories/%04d", i), "hit\n")
	}
	found, err := over(c).Glob(t.Context(), "*", ".", nil)
	if err != nil || len(found.Items) != backend.MaxFound || !found.Truncated {
		t.Errorf("Glob: %d files, truncated %t, error %v", len(found.Items), found.Truncated, err)
	}
	if !slices.IsSortedFunc(found.Items, func(a, b backend.Info) int { return backend.Compare(a.Path, b.Path) }) {
		t.Error("Glob is out of order")
	}
	matches, err := over(c).Grep(t.Context(), backend.Query{Pattern: "hit"})
	if err != nil || len(matches.Items) != backend.MaxMatches || !matches.Truncated {
		t.Errorf("Grep: %d matches, truncated %t, error %v", len(matches.Items), matches.Truncated, err)
	}
}

// A broken driver cannot list.
type broken struct {
	backend.Driver
	err error
}

func (b broken) List(context.Context, string) ([]backend.Info, error) { return nil, b.err }

func TestTheFailureOfOneMountIsReturned(t *testing.T) {
	failure := errors.New("it is broken")
	c := mounted(t, Mount{Path: "/fine", Driver: inMemory()}, Mount{Path: "/one", Driver: broken{err: failure}})
	_, globbing := over(c).Glob(t.Context(), "*", ".", nil)
	_, searching := over(c).Grep(t.Context(), backend.Query{Pattern: "x"})
	_, listing := over(c).List(t.Context(), "one")
	for _, err := range []error{globbing, searching, listing} {
		var of *backend.PathError
		if !errors.As(err, &of) || of.Path != "one" || !errors.Is(err, failure) {
			t.Errorf("error %v, want the failure, with its place", err)
		}
	}
	if _, err := over(c).Glob(t.Context(), "*", "fine", nil); err != nil {
		t.Errorf("a search that has nothing to do with it fails: %v", err)
	}
}

// Which pattern is meant below a mount, and that nothing is left out by it, is
// held to what the pattern means for whole paths.
func TestBelowMeansTheSame(t *testing.T) {
	files := []string{"a", "b/a", "tmp/a", "b/b/a", "b/tmp/a", "b/b/tmp/a"}
	whole, at := inMemory(), map[string]*Composite{}
	for _, m := range []string{"tmp", "b", "tmp/b", "b/tmp"} {
		at[m] = mounted(t, Mount{Path: "/" + m, Driver: inMemory()})
		for _, f := range files {
			put(t, at[m], m+"/"+f, "x")
			put(t, whole, m+"/"+f, "x")
		}
	}
	for _, pattern := range combined("a", "b", "tmp", "*", "**", "{tmp,b}", "{b/b,tmp}", "?") {
		all := globbed(t, whole, pattern, ".")
		for m, c := range at {
			want := slices.DeleteFunc(slices.Clone(all), func(f string) bool {
				rest, ok := strings.CutPrefix(f, m+"/")
				return !ok || !slices.Contains(files, rest)
			})
			if diff := cmp.Diff(want, globbed(t, c, pattern, "."), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%q below %s -want +got:\n%s", pattern, m, diff)
			}
		}
	}
}

// combined are all patterns of two and of three parts.
func combined(parts ...string) []string {
	var all []string
	for _, one := range parts {
		for _, two := range parts {
			all = append(all, one+"/"+two)
			for _, three := range parts {
				all = append(all, "/"+one+"/"+two+"/"+three)
			}
		}
	}
	return all
}
