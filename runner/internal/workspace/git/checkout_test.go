package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// A hostile is a repository whose trees a test writes as it likes.
type hostile struct {
	*Store
	t     *testing.T
	limit int64 // of the bytes of a checkout
}

func newHostile(t *testing.T) hostile {
	t.Helper()
	dir := t.TempDir()
	if err := create(dir); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return hostile{Store: s, t: t}
}

func (h hostile) put(kind plumbing.ObjectType, data string) plumbing.Hash {
	h.t.Helper()
	hash, err := h.putBytes(kind, []byte(data))
	if err != nil {
		h.t.Fatal(err)
	}
	return hash
}

// has returns an entry with a content.
func (h hostile) has(name string, mode filemode.FileMode, content string) entry {
	h.t.Helper()
	return entry{name: name, mode: mode, hash: h.put(plumbing.BlobObject, content)}
}

// directory returns an entry that is a tree; its entries keep their order.
func (h hostile) directory(name string, entries ...entry) entry {
	h.t.Helper()
	var data strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&data, "%o %s\x00%s", uint32(e.mode), e.name, e.hash[:])
	}
	return entry{name: name, mode: filemode.Dir, hash: h.put(plumbing.TreeObject, data.String())}
}

// checkOut checks out a commit with these entries into the directory that it returns.
func (h hostile) checkOut(entries ...entry) (string, error) {
	h.t.Helper()
	commit := h.put(plumbing.CommitObject, "tree "+h.directory("", entries...).hash.String()+"\n\nx\n")
	root, err := os.OpenRoot(h.t.TempDir())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = root.Close() })
	_, err = h.CheckOut(h.t.Context(), Target{Root: root, Under: ".", MaxBytes: h.limit}, Head{Commit: commit.String()}, "https://git.example/x.git")
	return root.Name(), err
}

// nested returns directories that lie in each other, the innermost with a file.
func (h hostile) nested(deep int) entry {
	h.t.Helper()
	e := h.has("f", filemode.Regular, "x")
	for range deep {
		e = h.directory("d", e)
	}
	return e
}

// A repository can be made by someone else than git: what no user has in one is refused, with
// what it is, and not tried again.
func TestCheckOutRefuses(t *testing.T) {
	h := newHostile(t)
	file := func(content string) entry { return h.has("a", filemode.Regular, content) }
	link := func(target string) entry { return h.has("a", filemode.Symlink, target) }
	const twice = `the name "a" more than once`
	long := strings.Repeat("n", 300)
	cases := map[string]struct {
		entries []entry
		want    string
	}{
		"a link of 5 KiB":                      {[]entry{link(strings.Repeat("x", 5<<10))}, `a symbolic link, "a", that is longer than 4096 bytes`},
		"a link of a mebibyte":                 {[]entry{link(strings.Repeat("x", 1<<20))}, `a symbolic link, "a", that is longer than 4096 bytes`},
		"directories 210 deep":                 {[]entry{h.nested(210)}, "directories more than 200 deep"},
		"a file twice":                         {[]entry{file("1"), file("2")}, twice},
		"a file twice, with another between":   {[]entry{file("1"), h.has("b", filemode.Regular, "b"), file("2")}, twice},
		"a link and a file":                    {[]entry{link("/etc/passwd"), file("2")}, twice},
		"a file and a link":                    {[]entry{file("1"), link("/etc/passwd")}, twice},
		"a file and a directory":               {[]entry{file("1"), h.directory("a", file("2"))}, twice},
		"a link and a directory":               {[]entry{link("/etc"), h.directory("a", file("2"))}, twice},
		"a directory twice":                    {[]entry{h.directory("a", file("1")), h.directory("a", h.has("b", filemode.Regular, "b"))}, twice},
		"a submodule and a file":               {[]entry{{name: "a", mode: filemode.Submodule}, file("2")}, twice},
		"a file twice in a directory":          {[]entry{h.directory("d", file("1"), file("2"))}, twice},
		"a mode that git does not know":        {[]entry{h.has("a", 0o777, "x")}, "with the mode 777"},
		"a file in the place of the directory": {[]entry{h.has("..", filemode.Regular, "x")}, "which git does not allow"},
		"a name of 300 bytes":                  {[]entry{h.directory("d", h.has(long, filemode.Regular, "x"))}, `cannot hold "/d/` + long + `" of the repository (file name too long)`},
		"a directory of 300 bytes":             {[]entry{h.directory(long, file("x"))}, "(file name too long)"},
		"a link of 300 bytes":                  {[]entry{h.has(long, filemode.Symlink, "x")}, "(file name too long)"},
		"a submodule of 300 bytes":             {[]entry{{name: long, mode: filemode.Submodule}}, "(file name too long)"},
		"a link without a target":              {[]entry{link("")}, `a symbolic link, "/a", without a target`},
		"a link with a NUL":                    {[]entry{link("b\x00c")}, `a symbolic link, "/a", with a NUL`},
		"a mode of 36 bits":                    {[]entry{{name: "d", mode: filemode.Dir, hash: h.put(plumbing.TreeObject, "777777777777 a\x00"+strings.Repeat("1", 20))}}, `mode "777777777777" is no number`},
		"a tree that is cut off":               {[]entry{{name: "d", mode: filemode.Dir, hash: h.put(plumbing.TreeObject, "100644 a")}}, "it is cut off or no tree"},
		"a file that is not there":             {[]entry{{name: "a", mode: filemode.Regular, hash: plumbing.NewHash(strings.Repeat("1", 40))}}, `has no blob 1111111111111111111111111111111111111111`},
		"a path that programs cannot open":     {[]entry{h.directory(long[:250], h.directory(long[:250], h.longNames(15)))}, "a path of more than 4095 bytes"},
		"a directory that is a file":           {[]entry{{name: "a", mode: filemode.Dir, hash: file("x").hash}}, "has no tree "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := h.checkOut(tc.entries...)
			if _, refused := errors.AsType[*RefusedError](err); !refused || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("CheckOut() = %v, want %q", err, tc.want)
			}
		})
	}
}

// What a volume cannot hold is not tried again; what may be otherwise in the next attempt is.
func TestFaultsOfAVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		refused bool
	}{
		"a name that differs in case alone":   {&fs.PathError{Op: "openat", Path: "a", Err: syscall.EEXIST}, true},
		"a name of bytes that are no text":    {&fs.PathError{Op: "openat", Path: "a", Err: syscall.EILSEQ}, true},
		"a character that it does not take":   {&fs.PathError{Op: "mkdirat", Path: "a", Err: syscall.EINVAL}, true},
		"a link where it has none":            {&os.LinkError{Op: "symlinkat", Err: syscall.EPERM}, true},
		"a link in the place of a directory":  {&fs.PathError{Op: "openat", Path: "a/b", Err: errors.New("path escapes from parent")}, true},
		"a file that is too large":            {errors.Join(&fs.PathError{Op: "write", Path: "a", Err: syscall.EFBIG}, nil), true},
		"a disk that fails":                   {&fs.PathError{Op: "openat", Path: "a", Err: syscall.EIO}, false},
		"a server of files that is restarted": {&fs.PathError{Op: "openat", Path: "a", Err: syscall.ESTALE}, false},
		"too many open files":                 {&fs.PathError{Op: "openat", Path: "a", Err: syscall.EMFILE}, false},
		"a repository that cannot be read":    {io.ErrUnexpectedEOF, false},
		"a volume that is full":               {&fs.PathError{Op: "write", Path: "a", Err: syscall.ENOSPC}, false},
		"an attempt that ends":                {context.Canceled, false},
		"a refusal":                           {Refused("No."), true},
	} {
		if _, refused := errors.AsType[*RefusedError](unfit("a", tc.err)); refused != tc.refused {
			t.Errorf("%s: refused %t, want %t", name, refused, tc.refused)
		}
	}
	if err := unfit("a", nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}

func TestCheckOutUpToTheBounds(t *testing.T) {
	h := newHostile(t)
	target := strings.Repeat("x/", maxLink/2-1) + "y"
	dir, err := h.checkOut(h.has("a", filemode.Symlink, target), h.nested(maxDepth), h.has("e", filemode.Regular, "x"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(filepath.Join(dir, "a")); err != nil || got != target {
		t.Errorf("the link has %d bytes: %v", len(got), err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, strings.Repeat("d/", maxDepth), "f")); err != nil || string(got) != "x" {
		t.Errorf("the innermost file has %q: %v", got, err)
	}
}

// Each entry takes a block of the file system and an inode, whatever it holds, and a few
// trees can hold each other so that they are millions of directories.
func TestCheckOutCountsEachEntry(t *testing.T) {
	h := newHostile(t)
	const index = 20 << 10 // of 256 entries
	all := func(e entry, n int) (out []entry) {
		for i := range n {
			e.name = fmt.Sprintf("%03d", i)
			out = append(out, e)
		}
		return out
	}
	for name, tc := range map[string]struct {
		entries []entry
		limit   int64
		fits    bool
	}{
		"directories without files in each other": {h.bomb(h.directory("")), 1 << 20, false},
		"links in directories in each other":      {h.bomb(h.has("", filemode.Symlink, "x")), 1 << 20, false},
		"empty files":                             {all(h.has("", filemode.Regular, ""), 257), 1 << 20, false},
		"empty files that fit":                    {all(h.has("", filemode.Regular, ""), 256), 1<<20 + index, true},
		"directories":                             {all(h.directory("", h.has("f", filemode.Regular, "")), 129), 1 << 20, false},
		"directories that fit":                    {all(h.directory("", h.has("f", filemode.Regular, "")), 128), 1<<20 + index, true},
		"submodules":                              {all(entry{mode: filemode.Submodule}, 257), 1 << 20, false},
		"links":                                   {all(h.has("", filemode.Symlink, "x"), 257), 1 << 20, false},
		"files of a byte more than a block":       {all(h.has("", filemode.Regular, strings.Repeat("x", blockSize+1)), 129), 1 << 20, false},
		"a file that is larger":                   {all(h.has("", filemode.Regular, strings.Repeat("x", 1<<20+1)), 1), 1 << 20, false},
		"a file that fits":                        {all(h.has("", filemode.Regular, strings.Repeat("x", 1<<20)), 1), 1<<20 + index, true},
		"empty files whose index does not fit":    {all(h.has("", filemode.Regular, ""), 256), 1<<20 + index/2, false},
		"no bound":                                {all(h.has("", filemode.Regular, ""), 300), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := h
			h.limit = tc.limit
			dir, err := h.checkOut(tc.entries...)
			_, refused := errors.AsType[*RefusedError](err)
			switch {
			case tc.fits && err != nil:
				t.Errorf("CheckOut() = %v", err)
			case !tc.fits && (!refused || !strings.Contains(err.Error(), "workspace.size")):
				t.Errorf("CheckOut() = %v, want that it does not fit", err)
			case !tc.fits && entriesBelow(dir) > tc.limit/blockSize+smallFiles:
				t.Errorf("%d entries were written", entriesBelow(dir))
			}
		})
	}
}

// smallFiles is how many files and directories .git has besides the index.
const smallFiles = 12

// longNames returns directories with long names in each other, so many, with a file.
func (h hostile) longNames(many int) entry {
	h.t.Helper()
	e := h.has("f", filemode.Regular, "x")
	for range many {
		e = h.directory(strings.Repeat("n", 250), e)
	}
	return e
}

// The paths of all files are in memory until the index is written.
func TestPathsOfACheckoutAreBounded(t *testing.T) {
	c := checkout{paths: maxPathBytes - 10}
	if err := c.record("0123456789", entry{mode: filemode.Regular}, nil); err != nil || len(c.index.Entries) != 1 {
		t.Errorf("as many as fit: %v", err)
	}
	if err := c.record("0", entry{mode: filemode.Regular}, nil); err == nil || !strings.Contains(err.Error(), "more than 64 MiB in all") {
		t.Errorf("one byte more: %v", err)
	}
}

// bomb returns eight directories that each have the same eight, and so on, eight times.
func (h hostile) bomb(e entry) []entry {
	h.t.Helper()
	for range 8 {
		var eight []entry
		for _, name := range "abcdefgh" {
			e.name = string(name)
			eight = append(eight, e)
		}
		e = h.directory("a", eight...)
	}
	return []entry{e}
}

// entriesBelow counts the files, directories and links below a directory.
func entriesBelow(dir string) int64 {
	n := int64(-1) // without the directory
	_ = filepath.WalkDir(dir, func(string, os.DirEntry, error) error {
		n++
		return nil
	})
	return n
}

// A file of a commit takes the place of nothing.
func TestWriteFileReplacesNothing(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.WriteFile("file", []byte("1"), 0o600), root.Symlink("target", "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "link"} {
		if err := WriteFile(root, name, strings.NewReader("2"), 0o664); !errors.Is(err, os.ErrExist) {
			t.Errorf("over the %s: %v", name, err)
		}
	}
	if got, err := root.ReadFile("file"); err != nil || string(got) != "1" {
		t.Errorf("the file has %q: %v", got, err)
	}
	if _, err := root.Lstat("target"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("behind the link is a file: %v", err)
	}
}
