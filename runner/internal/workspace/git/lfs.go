package git

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// lfsFilter is the value of the attribute filter of files that are stored with Git
	// LFS: git has a pointer in their place.
	// https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
	lfsFilter = "lfs"
	// maxPointer is the maximum size of a pointer, in bytes.
	maxPointer = 1024
	// maxAttributes bounds one .gitattributes, in bytes.
	maxAttributes = 1 << 20
)

// pointerStarts are how a pointer may begin: the second is of versions before 1.0.
var pointerStarts = []string{"version https://git-lfs.github.com/spec/", "version https://hawser.github.com/spec/"}

// A Paths is a list of paths of which the first few are kept.
type Paths struct {
	// Names are the paths in a form for messages.
	Names []string `json:"names,omitempty"`
	Count int      `json:"count,omitempty"`
}

// maxPaths bounds Paths.Names.
const maxPaths = 20

// With returns the list with one more path.
func (p Paths) With(name string) Paths {
	if p.Count++; len(p.Names) < maxPaths {
		p.Names = append(p.Names, printable(name))
	}
	return p
}

// List returns the paths in a sentence, as many as have n bytes together.
func (p Paths) List(n int) string {
	var list strings.Builder
	shown := 0
	for _, name := range p.Names {
		if strings.ContainsAny(name, " ,") {
			name = strconv.Quote(name)
		}
		if list.Len()+len(name) > n && shown > 0 {
			break
		}
		if len(name) > n {
			name = "…" + strings.ToValidUTF8(name[len(name)-n:], "")
		}
		if shown++; shown > 1 {
			list.WriteString(", ")
		}
		list.WriteString(name)
	}
	if more := p.Count - shown; more > 0 {
		fmt.Fprintf(&list, " and %d more", more)
	}
	return list.String()
}

// withAttributes returns the attributes with those of the .gitattributes in a tree.
func (s *Store) withAttributes(a attributes, dir string, entries []entry) (attributes, error) {
	for _, e := range entries {
		if e.name != attributesFile || !e.isFile() {
			continue
		}
		r, _, err := s.object(plumbing.BlobObject, e.hash)
		if err != nil {
			return a, err
		}
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, maxAttributes))
		if err != nil {
			return a, fmt.Errorf("reading the %s of the repository: %w", attributesFile, err)
		}
		return a.with(dir, text), nil
	}
	return a, nil
}

// isPointer reports whether a blob is a pointer of Git LFS.
func (s *Store) isPointer(h plumbing.Hash) (bool, error) {
	r, size, err := s.object(plumbing.BlobObject, h)
	if err != nil {
		return false, err
	}
	defer r.Close()
	if size > maxPointer {
		return false, nil
	}
	text, err := io.ReadAll(r)
	for _, start := range pointerStarts {
		if bytes.HasPrefix(text, []byte(start)) {
			return true, err
		}
	}
	return false, err
}

// emptyBlob is the content of an empty file, which Git LFS does not replace by a pointer.
var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// WithoutLFS returns tree without new content of files of Git LFS, and the paths of these files. They are as in base,
// or absent if base lacks them. A commit cannot have the new content: git expects pointers, whose objects would have to
// be uploaded. Pointers that base has at any path, and empty files, stay as they are in tree. The attributes are those
// of tree, as for every clone of it.
func (s *Store) WithoutLFS(base, tree string) (string, Paths, error) {
	l := &lfsTrees{store: s, base: plumbing.NewHash(base)}
	h, err := l.directory("", l.base, plumbing.NewHash(tree), attributes{})
	if err == nil && h.IsZero() {
		h, err = s.putBytes(plumbing.TreeObject, nil)
	}
	return h.String(), l.left, err
}

// An lfsTrees compares two trees.
type lfsTrees struct {
	store *Store
	base  plumbing.Hash
	blobs map[plumbing.Hash]bool // of base; nil: not read yet
	left  Paths
}

// directory returns the tree of one directory; zero: it is empty.
func (l *lfsTrees) directory(dir string, base, now plumbing.Hash, above attributes) (plumbing.Hash, error) {
	if base == now {
		return now, nil
	}
	before, err := l.store.tree(base)
	if err != nil {
		return now, err
	}
	after, err := l.store.tree(now)
	if err != nil {
		return now, err
	}
	attrs, err := l.store.withAttributes(above, dir, after)
	if err != nil {
		return now, err
	}
	old := byName(before)
	var entries []entry
	changed := false
	for _, e := range after {
		kept, err := l.entry(path.Join(dir, e.name), old[e.name], e, attrs)
		if err != nil {
			return now, err
		}
		changed = changed || kept != e
		if kept.name != "" {
			entries = append(entries, kept)
		}
	}
	switch {
	case !changed:
		return now, nil
	case len(entries) == 0:
		return plumbing.ZeroHash, nil
	}
	return l.store.putBytes(plumbing.TreeObject, encodeTree(entries))
}

// entry returns the entry for a name: the new one, or the old one, which is empty if there was none.
func (l *lfsTrees) entry(name string, old, now entry, attrs attributes) (entry, error) {
	if subtree := now.subtree(); !subtree.IsZero() {
		h, err := l.directory(name, old.subtree(), subtree, attrs)
		if err != nil || h.IsZero() {
			return entry{}, err
		}
		now.hash = h
		return now, nil
	}
	if !now.isFile() || old.isFile() && old.hash == now.hash || now.hash == emptyBlob || attrs.filter(name) != lfsFilter {
		return now, nil
	}
	known, err := l.isKnownPointer(now.hash)
	if err != nil || known {
		return now, err
	}
	l.left = l.left.With(name)
	return old, nil
}

// isKnownPointer reports whether a blob is a pointer that base has too, so that its object
// was uploaded: the file was moved or copied.
func (l *lfsTrees) isKnownPointer(h plumbing.Hash) (bool, error) {
	pointer, err := l.store.isPointer(h)
	if err != nil || !pointer {
		return false, err
	}
	if l.blobs == nil {
		l.blobs = map[plumbing.Hash]bool{}
		err = l.readBlobs(l.base)
	}
	return l.blobs[h], err
}

func (l *lfsTrees) readBlobs(tree plumbing.Hash) error {
	entries, err := l.store.tree(tree)
	for _, e := range entries {
		if err == nil && e.isFile() {
			l.blobs[e.hash] = true
		}
		if err == nil {
			err = l.readBlobs(e.subtree())
		}
	}
	return err
}
