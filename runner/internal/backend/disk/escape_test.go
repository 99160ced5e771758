package disk

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

const secret = "the content of a file outside"

// A fixture is a root, and beside it a file that must stay as it is.
type fixture struct {
	*backend.Backend
	disk    *Disk
	dir     string // the root
	outside string // a directory beside the root, with the file "secret"
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	base := t.TempDir()
	g := fixture{dir: filepath.Join(base, "root"), outside: filepath.Join(base, "outside")}
	for _, dir := range []string{g.dir, g.outside} {
		must(t, os.Mkdir(dir, 0o755))
	}
	must(t, os.WriteFile(filepath.Join(g.outside, "secret"), []byte(secret), 0o644))
	g.disk = open(t, g.dir)
	g.Backend = backend.New(g.disk, noon)
	t.Cleanup(func() { g.checkOutside(t) })
	return g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at is a path in the root, for the test to arrange what the backend finds.
func (g fixture) at(name string) string { return filepath.Join(g.dir, name) }

// checkOutside asserts that nothing outside has changed.
func (g fixture) checkOutside(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(g.outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v (error %v), want the secret alone", entries, err)
	}
	data, err := os.ReadFile(filepath.Join(g.outside, "secret"))
	if err != nil || string(data) != secret {
		t.Errorf("the secret is %q (error %v)", data, err)
	}
}

// attempts are all the ways to what a path leads to; each returns what it let out.
func (g fixture) attempts(name string) map[string]func(context.Context) (string, error) {
	all := map[string]func(context.Context) (string, error){}
	for op := range g.direct(name) {
		all[op] = func(ctx context.Context) (string, error) {
			resolved, err := g.Resolve(ctx, name)
			if err != nil {
				return "", err
			}
			return g.direct(resolved)[op](ctx)
		}
	}
	return all
}

// direct are the same ways for a path as it is.
func (g fixture) direct(name string) map[string]func(context.Context) (string, error) {
	return map[string]func(context.Context) (string, error){
		"Read": func(ctx context.Context) (string, error) {
			p, err := g.Read(ctx, name, backend.Window{Limit: 10})
			return strings.Join(p.Lines, "\n"), err
		},
		"Write": func(ctx context.Context) (string, error) {
			_, err := g.Write(ctx, name, []byte("x"), backend.Any)
			return "", err
		},
		"Edit": func(ctx context.Context) (string, error) {
			_, err := g.Edit(ctx, name, backend.Edit{Old: "content", New: "x"})
			return "", err
		},
		"Grep": func(ctx context.Context) (string, error) {
			m, err := g.Grep(ctx, backend.Query{Pattern: "content", Dir: name})
			return texts(m), err
		},
	}
}

func texts(m backend.Matches) string {
	var out strings.Builder
	for _, i := range m.Items {
		out.WriteString(i.Text)
	}
	return out.String()
}

func TestLinksNeverLeadOutside(t *testing.T) {
	cases := map[string]struct {
		link, target string // target is below the fixture's base
		path         string
	}{
		"an absolute link to a file":               {"l", "/ABS/secret", "l"},
		"an absolute link to a directory":          {"l", "/ABS", "l/secret"},
		"a relative link to a file":                {"l", "../outside/secret", "l"},
		"a relative link to a directory":           {"l", "../outside", "l/secret"},
		"a link to the directory above":            {"l", "..", "l/outside/secret"},
		"a link that leaves and comes back":        {"l", "../root/f", "l"},
		"a link to the root's own absolute name":   {"l", "/ROOT/f", "l"},
		"a link through a directory that is there": {"l", "d/../../outside/secret", "l"},
		"a link to the open files of the process":  {"l", "/proc/self/fd", "l/0"},
		"a link to the root of the system":         {"l", "/", "l/etc/passwd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := newFixture(t)
			must(t, os.Mkdir(g.at("d"), 0o755))
			target := strings.NewReplacer("/ABS", g.outside, "/ROOT", g.dir).Replace(tc.target)
			must(t, os.Symlink(target, g.at(tc.link)))
			for op, attempt := range g.attempts(tc.path) {
				got, err := attempt(t.Context())
				if !errors.Is(err, backend.ErrEscapes) || got != "" {
					t.Errorf("%s: got %q and error %v, want ErrEscapes", op, got, err)
				}
			}
			for op, attempt := range g.direct(tc.path) {
				got, err := attempt(t.Context())
				if !errors.Is(err, backend.ErrLink) || got != "" {
					t.Errorf("%s without Resolve: got %q and error %v, want ErrLink", op, got, err)
				}
			}
		})
	}
}

func TestSearchesDoNotFollowLinksOut(t *testing.T) {
	g := newFixture(t)
	must(t, os.Symlink(g.outside, g.at("dir")))
	must(t, os.Symlink("../outside/secret", g.at("file")))
	must(t, os.Symlink(".", g.at("loop")))
	must(t, os.WriteFile(g.at("inside"), []byte("content\n"), 0o644))
	must(t, os.Symlink("inside", g.at("link")))

	found, err := g.Glob(t.Context(), "*", ".", nil)
	must(t, err)
	var names []string
	for _, i := range found.Items {
		names = append(names, i.Path)
	}
	if got := strings.Join(names, " "); got != "inside link" {
		t.Errorf("Glob found %q, want the files inside", got)
	}
	matches, err := g.Grep(t.Context(), backend.Query{Pattern: "content"})
	must(t, err)
	if len(matches.Items) != 1 || matches.Items[0].Path != "inside" {
		t.Errorf("Grep found %+v, want the file inside, once", matches.Items)
	}
	for _, dir := range []string{"dir", "file"} {
		_, err = g.List(t.Context(), dir)
		wantKind(t, "List "+dir, err, backend.ErrLink)
		_, err = g.Glob(t.Context(), "*", dir, nil)
		wantKind(t, "Glob in "+dir, err, backend.ErrLink)
		_, err = g.Resolve(t.Context(), dir)
		wantKind(t, "Resolve "+dir, err, backend.ErrEscapes)
	}
	listed, err := g.List(t.Context(), ".")
	must(t, err)
	for _, i := range listed {
		if i.Path == "dir" && (i.Dir || i.Size != 0) {
			t.Errorf("List tells of a directory outside: %+v", i)
		}
	}
}

func wantKind(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

// Another process swaps a directory for a link to the outside, again and again, while
// every operation goes on. No byte gets out or in.
func TestSwappedLinks(t *testing.T) {
	g := newFixture(t)
	must(t, os.MkdirAll(g.at("real"), 0o755))
	must(t, os.WriteFile(g.at("real/secret"), []byte("content inside"), 0o644))
	must(t, os.Symlink("real", g.at("d")))

	done := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			target := []string{"real", g.outside, "../outside"}[i%3]
			must(t, os.Symlink(target, g.at("next")))
			must(t, os.Rename(g.at("next"), g.at("d")))
		}
	})
	for range 300 {
		for op, attempt := range g.attempts("d/secret") {
			if got, _ := attempt(t.Context()); strings.Contains(got, "outside") {
				t.Fatalf("%s let out %q", op, got)
			}
		}
		found, _ := g.Glob(t.Context(), "d/*", ".", nil)
		for _, i := range found.Items {
			if i.Size == int64(len(secret)) {
				t.Fatalf("Glob tells of a file outside: %+v", i)
			}
		}
	}
	close(done)
	swapping.Wait()
}

// A pipe without a writer blocks a process that opens it without O_NONBLOCK.
func TestWhatIsNoFileIsRefusedAtOnce(t *testing.T) {
	g := newFixture(t)
	must(t, syscall.Mkfifo(g.at("pipe"), 0o666))
	must(t, os.Symlink("pipe", g.at("link")))
	var lc net.ListenConfig
	socket, err := lc.Listen(t.Context(), "unix", g.at("socket"))
	must(t, err)
	defer socket.Close()
	names := []string{"pipe", "link", "socket"}
	if syscall.Mknod(g.at("device"), syscall.S_IFCHR|0o666, 1<<8|5) == nil { // /dev/zero; needs root
		names = append(names, "device")
	}
	for _, name := range names {
		for op, attempt := range g.attempts(name) {
			_, err := attempt(t.Context())
			wantKind(t, op+" "+name, err, backend.ErrNotFile)
		}
		resolved, err := g.Resolve(t.Context(), name)
		must(t, err)
		_, err = g.List(t.Context(), resolved)
		wantKind(t, "List "+name, err, backend.ErrNotDir)
		for op, attempt := range g.attempts(name + "/below") {
			_, err := attempt(t.Context())
			wantKind(t, op+" below "+name, err, backend.ErrNotDir)
		}
	}
	if _, err := g.disk.openNow("pipe"); !errors.Is(err, backend.ErrNotFile) {
		t.Errorf("a pipe that takes the place of a file just seen: error %v, want ErrNotFile", err)
	}
	matches, err := g.Grep(t.Context(), backend.Query{Pattern: "x"})
	if err != nil || len(matches.Items) != 0 {
		t.Errorf("Grep over a pipe: %+v, error %v", matches, err)
	}
}

func TestNames(t *testing.T) {
	g := newFixture(t)
	cases := map[string]struct {
		name string
		want error
	}{
		"a name of 300 bytes":             {strings.Repeat("n", 300), backend.ErrBadName},
		"a path of 5,000 bytes":           {strings.Repeat("d/", 2500) + "f", backend.ErrBadName},
		"a name with two dots in it":      {"foo..bar", backend.ErrNotFound},
		"a name with a tilde at its end":  {"f~", backend.ErrNotFound},
		"our own directory":               {TempDir, backend.ErrBadName},
		"a file in our own directory":     {TempDir + "/x", backend.ErrBadName},
		"a file that is being written":    {"d/" + tempPrefix + "x", backend.ErrBadName},
		"a directory by a name not clean": {"./d//../", backend.ErrEscapes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := g.Read(t.Context(), tc.name, backend.Window{Limit: 1})
			wantKind(t, "Read", err, tc.want)
		})
	}
}

// Where case matters two names are two files; where it does not they are one,
// and never both at once.
func TestNamesThatDifferInCase(t *testing.T) {
	g := newFixture(t)
	must(t, os.WriteFile(g.at("Name"), []byte("upper\n"), 0o644))
	_, err := g.Write(t.Context(), "name", []byte("lower\n"), backend.Absent)
	if err != nil {
		wantKind(t, "Write where case does not matter", err, backend.ErrExists)
		return
	}
	page, err := g.Read(t.Context(), "Name", backend.Window{Limit: 1})
	if err != nil || page.Lines[0] != "upper" {
		t.Errorf("Read of the other name: %v, error %v", page.Lines, err)
	}
}

// A link to a file keeps being one; the other name of a hard link keeps its
// content, because a write replaces the file.
func TestLinksInside(t *testing.T) {
	g := newFixture(t)
	must(t, os.Mkdir(g.at("d"), 0o755))
	must(t, os.WriteFile(g.at("d/file"), []byte("old"), 0o640))
	must(t, os.Symlink("d/file", g.at("link")))
	must(t, os.Symlink("../link", g.at("d/again")))
	must(t, os.Link(g.at("d/file"), g.at("hard")))
	must(t, os.Symlink("fresh", g.at("dangling")))
	must(t, os.Symlink("circle", g.at("circle")))

	resolve := func(name, want string) string {
		resolved, err := g.Resolve(t.Context(), name)
		if err != nil || resolved != want {
			t.Fatalf("Resolve(%s) = %q, %v; want %q", name, resolved, err, want)
		}
		return resolved
	}
	_, err := g.Edit(t.Context(), resolve("d/again", "d/file"), backend.Edit{Old: "old", New: "new"})
	must(t, err)
	_, err = g.Write(t.Context(), resolve("dangling", "fresh"), []byte("made"), backend.Absent)
	must(t, err)
	for name, want := range map[string]string{"d/file": "new", "link": "new", "d/again": "new", "hard": "old", "fresh": "made"} {
		data, err := os.ReadFile(g.at(name))
		if err != nil || string(data) != want {
			t.Errorf("%s has %q (error %v), want %q", name, data, err, want)
		}
	}
	for _, name := range []string{"link", "d/again", "dangling"} {
		info, err := os.Lstat(g.at(name))
		must(t, err)
		if info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", name)
		}
	}
	_, err = g.Resolve(t.Context(), "circle")
	wantKind(t, "Resolve of a link to itself", err, backend.ErrBadName)
}

func TestHugeFiles(t *testing.T) {
	g := newFixture(t)
	huge := func(name string, size int64) {
		must(t, os.WriteFile(g.at(name), bytes.Repeat([]byte("content\n"), 4), 0o644))
		must(t, os.Truncate(g.at(name), size)) // sparse: it takes no room
	}
	huge("read", 2<<30)
	huge("edit", backend.MaxEdit+1)
	for _, tc := range []struct{ op, name string }{{"Read", "read"}, {"Edit", "edit"}, {"Grep", "edit"}} {
		var large *backend.TooLargeError
		if _, err := g.attempts(tc.name)[tc.op](t.Context()); !errors.As(err, &large) {
			t.Errorf("%s of a huge file: error %v, want a TooLargeError", tc.op, err)
		}
	}
	matches, err := g.Grep(t.Context(), backend.Query{Pattern: "content"})
	if err != nil || len(matches.Items) != 0 {
		t.Errorf("Grep over huge files: %+v, error %v; want them passed over", matches, err)
	}
}
