package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// A FolderWriter takes the content of a folder, each folder before its content.
type FolderWriter interface {
	Folder(name string) error
	File(name string, perm fs.FileMode, from io.Reader) error
}

// WriteFolder writes a folder of a commit, which must have a file of a name. Path is empty for the root. Only files and
// folders can be in it: no links, no submodules, no pointers of Git LFS.
func (s *Store) WriteFolder(ctx context.Context, commit, folder, mustHave string, to FolderWriter) error {
	tree, err := s.treeOf(commit)
	if err != nil {
		return err
	}
	for step := range strings.SplitSeq(folder, "/") {
		if step == "" {
			continue
		}
		entries, err := s.tree(tree)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == step && e.mode == filemode.Dir })
		if i < 0 {
			return Refused("the repository has no folder %s at this commit", folder)
		}
		tree = entries[i].hash
	}
	entries, err := s.tree(tree)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.name == mustHave && e.isFile() }) {
		return Refused("it has no %s", mustHave)
	}
	return s.writeEntries(ctx, "", entries, to)
}

func (s *Store) writeEntries(ctx context.Context, dir string, entries []entry, to FolderWriter) error {
	if depth(dir) > maxDepth {
		return Refused("its folders are more than %d deep", maxDepth)
	}
	if name, is := repeated(entries); is {
		return Refused("the repository has the name %q more than once in one folder, which git does not allow", printable(name))
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := checkName(dir, e.name); err != nil {
			return err
		}
		if err := s.writeEntry(ctx, path.Join(dir, e.name), e, to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeEntry(ctx context.Context, name string, e entry, to FolderWriter) error {
	switch {
	case e.mode == filemode.Dir:
		if err := to.Folder(name); err != nil {
			return err
		}
		entries, err := s.tree(e.hash)
		if err != nil {
			return err
		}
		return s.writeEntries(ctx, name, entries, to)
	case !e.isFile():
		return Refused("%q is neither a file nor a folder: copy what it leads to into the folder", printable(name))
	}
	if isPointer, err := s.isPointer(e.hash); err != nil || isPointer {
		if isPointer {
			err = Refused("%q is a file of Git LFS, whose content is not in the repository: commit the file itself", printable(name))
		}
		return err
	}
	r, _, err := s.object(plumbing.BlobObject, e.hash)
	if err != nil {
		return err
	}
	defer r.Close()
	perm, err := e.mode.ToOSFileMode()
	return errors.Join(err, to.File(name, perm, r))
}
