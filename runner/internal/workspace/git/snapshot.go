package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// Limits bound a Snapshot.
type Limits struct {
	// Bytes is of all files that are new or changed, together.
	Bytes int64
	// Files bounds the number of published files. A workspace may have ten times as many names that are not published.
	Files int
}

// Placed is a file that was copied into the workspace and is not work of the Run.
type Placed struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Hash string `json:"hash"`
}

// A Basis is what a Snapshot is compared with.
type Basis struct {
	// Commit determines which files are tracked and which are ignored.
	Commit string
	// Placed files stay as they are in Commit while they are unchanged since they were placed.
	Placed []Placed
}

// A walk reads the files of a workspace once. Commands may change them at the same time, so
// all access is through the root.
type walk struct {
	store  *Store
	root   *os.Root
	limits Limits
	placed map[string]version

	bytes int64
	files int
	names int
}

// Snapshot makes a tree of the files of a workspace, and returns its hash. It leaves out every .git, untracked files
// that the .gitignore files of the basis ignore, and everything that is neither a file nor a link. Submodules stay as
// they are in the basis.
func (s *Store) Snapshot(ctx context.Context, root *os.Root, on Basis, limits Limits) (string, error) {
	if err := s.removeTemporary(); err != nil {
		return "", fmt.Errorf("tidying the repository: %w", err)
	}
	base, err := s.treeOf(on.Commit)
	if err != nil {
		return "", err
	}
	w := &walk{store: s, root: root, limits: limits, placed: map[string]version{}}
	for _, p := range on.Placed {
		w.placed[p.Path] = version{size: p.Size, hash: plumbing.NewHash(p.Hash)}
	}
	tree, err := w.directory(ctx, directoryState{tree: base})
	if err != nil {
		return "", during("reading the workspace", err)
	}
	if tree.IsZero() { // everything was deleted
		tree, err = s.putBytes(plumbing.TreeObject, nil)
	}
	return tree.String(), err
}

// treeOf returns the tree of a commit.
func (s *Store) treeOf(commit string) (plumbing.Hash, error) {
	data, err := s.readAll(plumbing.CommitObject, plumbing.NewHash(commit))
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return plumbing.NewHash(field(data, "tree")), nil
}

// A directoryState is a directory of the workspace with its content in the basis.
type directoryState struct {
	dir   string
	tree  plumbing.Hash // zero: the basis has no such directory
	rules rules
	had   map[string]entry
}

// readBasis reads the entries and the .gitignore of a directory from the basis.
func (w *walk) readBasis(p directoryState) (directoryState, error) {
	if depth(p.dir) > maxDepth {
		return p, Refused("The workspace has directories more than %d deep: remove them.", maxDepth)
	}
	entries, err := w.store.tree(p.tree)
	if err != nil {
		return p, err
	}
	p.had = byName(entries)
	ignored, ok := p.had[ignoreFile]
	if !ok || !ignored.isFile() {
		return p, nil
	}
	r, _, err := w.store.object(plumbing.BlobObject, ignored.hash)
	if err != nil {
		return p, err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxIgnore))
	if err != nil {
		return p, fmt.Errorf("reading the %s of the repository: %w", ignoreFile, err)
	}
	p.rules = p.rules.with(p.dir, text)
	return p, nil
}

// directory returns the tree of a directory; zero if it is empty.
func (w *walk) directory(ctx context.Context, p directoryState) (plumbing.Hash, error) {
	p, err := w.readBasis(p)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	at := path.Join(".", p.dir)
	seen, err := w.root.Lstat(at)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	f, err := openSame(w.root, at, seen, dirFlags)
	if err != nil {
		return plumbing.ZeroHash, unreadable(p.dir, err)
	}
	defer f.Close()
	var entries []entry
	for name, err := range Names(f) {
		if err != nil {
			return plumbing.ZeroHash, unreadable(p.dir, err)
		}
		e, ok, err := w.entry(ctx, p, name)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if ok {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return plumbing.ZeroHash, nil
	}
	return w.putUnlessKnown(p.tree, plumbing.TreeObject, encodeTree(entries))
}

// putUnlessKnown writes an object, unless it has the given hash.
func (w *walk) putUnlessKnown(known plumbing.Hash, kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	if plumbing.ComputeHash(kind, data) == known {
		return known, nil
	}
	return w.store.putBytes(kind, data)
}

// entry returns the tree entry of a name; false if it is left out.
func (w *walk) entry(ctx context.Context, p directoryState, name string) (entry, bool, error) {
	if err := ctx.Err(); err != nil {
		return entry{}, false, err
	}
	const spare = 10
	if w.names++; w.names/spare > w.limits.Files {
		return entry{}, false, Refused("The workspace has more than %d files and directories: remove what is not needed.", spare*w.limits.Files)
	}
	if isDotGit(name) {
		return entry{}, false, nil
	}
	at := path.Join(p.dir, name)
	info, err := w.root.Lstat(at)
	if err != nil {
		return skipDeleted(at, err)
	}
	had, tracked := p.had[name]
	if tracked && had.mode == filemode.Submodule && info.IsDir() {
		return had, true, nil
	}
	if info.IsDir() {
		return w.below(ctx, p, at, had)
	}
	if (!tracked || had.mode == filemode.Dir) && p.rules.ignore(at, info.Mode()) {
		return entry{}, false, nil
	}
	e, ok, err := w.leaf(ctx, at, info, had)
	if err != nil {
		return skipDeleted(at, err)
	}
	return e, ok, nil
}

// skipDeleted leaves out a file that was deleted after it was listed.
func skipDeleted(name string, err error) (entry, bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return entry{}, false, nil
	}
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return entry{}, false, err
	}
	return entry{}, false, unreadable(name, err)
}

// below returns the entry of a subdirectory. In an ignored one, only files that the basis
// tracks are included.
func (w *walk) below(ctx context.Context, p directoryState, at string, had entry) (entry, bool, error) {
	next := directoryState{dir: at, rules: p.rules}
	if had.mode == filemode.Dir {
		next.tree = had.hash
	}
	if p.rules.ignore(at, fs.ModeDir) {
		if next.tree.IsZero() {
			return entry{}, false, nil
		}
		next.rules.all = true
	}
	tree, err := w.directory(ctx, next)
	if err != nil {
		return skipDeleted(at, err)
	}
	return entry{name: path.Base(at), mode: filemode.Dir, hash: tree}, !tree.IsZero(), nil
}

// leaf returns the entry of a file or a symbolic link.
func (w *walk) leaf(ctx context.Context, at string, info fs.FileInfo, had entry) (entry, bool, error) {
	e := entry{name: path.Base(at), mode: modeOf(info, had)}
	if e.mode == filemode.Empty {
		return e, false, nil
	}
	if w.files++; w.files > w.limits.Files {
		return e, false, Refused("The workspace has more than %d files to publish: remove what is not to be published, or add it to .gitignore in the repository.", w.limits.Files)
	}
	var err error
	if e.mode == filemode.Symlink {
		e.hash, err = w.link(at, had)
		return e, err == nil, err
	}
	known, err := w.known(at, had)
	if err != nil {
		return e, false, err
	}
	e.hash, err = w.blob(ctx, at, known)
	if err == nil && e.hash == w.placed[at].hash {
		return had, had.name != "", nil
	}
	return e, err == nil, err
}

// modeOf returns the mode of a file in git; Empty if git does not store it.
func modeOf(info fs.FileInfo, had entry) filemode.FileMode {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return filemode.Symlink
	case !mode.IsRegular():
		return filemode.Empty
	case mode&0o100 != 0:
		return filemode.Executable
	case had.mode == filemode.Deprecated:
		return filemode.Deprecated
	default:
		return filemode.Regular
	}
}

// known returns the versions of a file in the basis.
func (w *walk) known(at string, had entry) ([]version, error) {
	var all []version
	if had.isFile() {
		size, err := w.store.storage.EncodedObjectSize(had.hash)
		if err != nil {
			return nil, fmt.Errorf("reading blob %s: %w", had.hash, err)
		}
		all = append(all, version{size: size, hash: had.hash})
	}
	if v, ok := w.placed[at]; ok {
		all = append(all, v)
	}
	return all, nil
}

// An entry is one name in a tree.
type entry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// tree reads the entries of a tree; the zero hash has none.
func (s *Store) tree(h plumbing.Hash) ([]entry, error) {
	if h.IsZero() {
		return nil, nil
	}
	data, err := s.readAll(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, Refused("The repository has a directory that is no tree of git (%s: %v): commit it again with git.", h, err)
	}
	return entries, nil
}

// parseTree parses the format of git: for each entry mode, space, name, NUL and hash.
func parseTree(data []byte) ([]entry, error) {
	var entries []entry
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < len(plumbing.ZeroHash) {
			return nil, fmt.Errorf("it is cut off or no tree")
		}
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			return nil, fmt.Errorf("mode %q is no number", printable(mode))
		}
		e := entry{name: name, mode: filemode.FileMode(bits)}
		data = rest[copy(e.hash[:], rest):]
		entries = append(entries, e)
	}
	return entries, nil
}

// encodeTree writes the entries in git's order: as if a directory's name ended
// in a slash.
func encodeTree(entries []entry) []byte {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.sorted(), b.sorted()) })
	var out bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&out, "%o %s\x00", uint32(e.mode), e.name)
		out.Write(e.hash[:])
	}
	return out.Bytes()
}

func (e entry) sorted() string {
	if e.mode == filemode.Dir {
		return e.name + "/"
	}
	return e.name
}

// byName returns the entries by their names.
func byName(entries []entry) map[string]entry {
	names := make(map[string]entry, len(entries))
	for _, e := range entries {
		names[e.name] = e
	}
	return names
}

// isFile reports whether an entry is a regular file. Old trees have
// more modes than are written today.
func (e entry) isFile() bool {
	return e.mode == filemode.Regular || e.mode == filemode.Executable || e.mode == filemode.Deprecated
}

// namesPerRead is how many names of a directory are read at once.
const namesPerRead = 1024

// Names yields the names in an open directory, in no order, without holding all of them in memory. An error comes last.
func Names(dir *os.File) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := dir.ReadDir(namesPerRead)
		for ; err == nil; entries, err = dir.ReadDir(namesPerRead) {
			for _, e := range entries {
				if !yield(e.Name(), nil) {
					return
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			yield("", err)
		}
	}
}

// isDotGit reports whether a name can mean a git directory on any file system: in any case of letters, with the
// suffixes that Windows ignores or treats as equal, and with the characters that macOS ignores.
func isDotGit(name string) bool {
	name, _, _ = strings.Cut(strings.Map(visible, name), ":") // .git::$INDEX_ALLOCATION
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// visible drops the characters that HFS+ ignores.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	default:
		return r
	}
}

// isName reports whether a name of a tree may become one of a file.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !isDotGit(name)
}

// depth returns how many parents a directory has.
func depth(dir string) int { return strings.Count(dir, "/") }
