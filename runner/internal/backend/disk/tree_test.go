package disk

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// stepwise has a backend open paths part by part.
func stepwise(d *Disk) *Disk {
	d.stepwise.Store(true)
	return d
}

func TestResolveFollowsLinksInside(t *testing.T) {
	g := newFixture(t)
	must(t, os.MkdirAll(g.at("a/b"), 0o755))
	must(t, os.WriteFile(g.at("a/b/f"), nil, 0o644))
	for name, target := range map[string]string{
		"dir": "a/b", "file": "a/b/f", "again": "dir", "a/up": "..", "a/b/top": "../../dir/", "gone": "a/none/x", "wrong": "none/../a",
		"loop": "loop", "out": "../outside", "abs": "/etc", "back": "a/../../root/a", "below": "file/x", "temp": TempDir,
	} {
		must(t, os.Symlink(target, g.at(name)))
	}
	cases := map[string]struct {
		want string
		err  error
	}{
		".": {want: "."}, "dir": {want: "a/b"}, "dir/f": {want: "a/b/f"}, "file": {want: "a/b/f"}, "again/f": {want: "a/b/f"},
		"a/up/a/up/dir//f": {want: "a/b/f"}, "a/b/top/new/x": {want: "a/b/new/x"}, "a/up": {want: "."},
		"gone": {want: "a/none/x"}, "gone/y": {want: "a/none/x/y"}, "dir/f/x": {want: "a/b/f/x"}, "below": {want: "a/b/f/x"},
		"none/x":   {want: "none/x"},
		"wrong":    {err: backend.ErrNotFound},
		"loop/x":   {err: backend.ErrBadName},
		"out":      {err: backend.ErrEscapes},
		"abs":      {err: backend.ErrEscapes},
		"back":     {err: backend.ErrEscapes},
		"temp":     {err: backend.ErrBadName},
		"dir/../f": {err: backend.ErrEscapes},
	}
	for name, tc := range cases {
		got, err := g.Resolve(t.Context(), name)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, %v", name, got, err, tc.want, tc.err)
		}
		if err != nil {
			continue
		}
		if again, err := g.Resolve(t.Context(), got); again != got || err != nil {
			t.Errorf("Resolve(%q), which is resolved, = %q, %v", got, again, err)
		}
	}
}

// No operation of the tree goes through a link, wherever in a path it is, with
// openat2 and without.
func TestTheTreeFollowsNoLink(t *testing.T) {
	for name, arrange := range map[string]func(*Disk) *Disk{
		"with openat2": func(d *Disk) *Disk { return d }, "part by part": stepwise,
	} {
		t.Run(name, func(t *testing.T) {
			g := newFixture(t)
			arrange(g.disk)
			must(t, os.MkdirAll(g.at("d/e"), 0o755))
			must(t, os.WriteFile(g.at("d/e/f"), []byte("x"), 0o644))
			must(t, os.Symlink("d", g.at("l")))
			must(t, os.Symlink("e", g.at("d/m")))
			must(t, os.Symlink("e/f", g.at("d/n")))
			for _, path := range []string{"l/e/f", "d/m/f", "l/m/f", "d/n", "l/n", "l/none"} {
				_, err := g.disk.tree.open(path, os.O_RDONLY, 0)
				wantKind(t, "open "+path, err, syscall.ELOOP)
			}
			for _, path := range []string{"l", "d/m", "l/e"} {
				_, err := g.disk.tree.open(path, os.O_RDONLY|syscall.O_DIRECTORY, 0)
				wantKind(t, "open the directory "+path, err, syscall.ELOOP)
			}
			wantKind(t, "mkdir", g.disk.mkdir("l/x", 0o755), syscall.ELOOP)
			wantKind(t, "remove", g.disk.remove("l/e/f"), syscall.ELOOP)
			wantKind(t, "rename from", g.disk.rename("l/e/f", "g"), syscall.ELOOP)
			wantKind(t, "rename to", g.disk.rename("d/e/f", "d/m/g"), syscall.ELOOP)
			_, err := g.disk.lstat("l/e")
			wantKind(t, "lstat", err, syscall.ELOOP)
			info, err := g.disk.lstat("d/m")
			if err != nil || info.mode&fs.ModeSymlink == 0 {
				t.Errorf("lstat of a link at the end: %v, %v", info, err)
			}
			_, err = g.disk.lstat("d/e/f/x")
			wantKind(t, "lstat below a file", err, syscall.ENOTDIR)
			_, err = g.disk.lstat("d/none")
			wantKind(t, "lstat of nothing", err, fs.ErrNotExist)
		})
	}
}
