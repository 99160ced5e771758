package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// Bounds of the files of one ConfigMap; those of Kubernetes are lower.
const (
	maxPlacedBytes = 8 << 20
	maxPlacedFiles = 10_000
)

// A fileCopier copies the files of one ConfigMap to stagingDir.
type fileCopier struct {
	from  *os.Root
	to    *os.Root
	files Files
	bytes int64
	done  []git.Placed
}

func copyFiles(ctx context.Context, to *os.Root, files Files) ([]git.Placed, error) {
	if files.Path = path.Clean(files.Path); !fs.ValidPath(files.Path) || strings.Contains(files.Path, "\x00") {
		return nil, &RefusedError{Message: fmt.Sprintf("The files cannot be put at %q: it must be a path below the workspace, without \"..\" and a slash before it.", files.Path)}
	}
	from, err := os.OpenRoot(files.Dir)
	if err != nil {
		return nil, fmt.Errorf("opening the files for %q: %w", files.Path, err)
	}
	defer from.Close()
	p := &fileCopier{from: from, to: to, files: files}
	if err := p.directory(ctx, "."); err != nil {
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return nil, refused
		}
		return nil, fmt.Errorf("copying the files for %q: %w", files.Path, err)
	}
	return p.done, nil
}

// isDotGit reports whether a path is in the .git of the workspace.
func isDotGit(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return strings.EqualFold(first, ".git")
}

// directory copies a directory. Names that begin with two dots are internal to the
// kubelet; the other names are links to them.
func (fc *fileCopier) directory(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(fc.from.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if err := errors.Join(ctx.Err(), fc.entry(ctx, path.Join(dir, e.Name()))); err != nil {
			return err
		}
	}
	return nil
}

func (fc *fileCopier) entry(ctx context.Context, name string) error {
	info, err := fc.from.Stat(name)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return fc.directory(ctx, name)
	case !info.Mode().IsRegular():
		return nil
	}
	data, err := fc.read(name)
	if err != nil {
		return err
	}
	return fc.writeFile(path.Join(fc.files.Path, name), data, info.Mode().Perm()&0o111|0o664)
}

func (fc *fileCopier) read(name string) ([]byte, error) {
	f, err := fc.from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlacedBytes-fc.bytes+1))
	if fc.bytes += int64(len(data)); fc.bytes > maxPlacedBytes || len(fc.done) >= maxPlacedFiles {
		return nil, &RefusedError{Message: fmt.Sprintf("The files for %q are more than %d bytes or %d files: bring so much by git or an image.", fc.files.Path, maxPlacedBytes, maxPlacedFiles)}
	}
	return data, err
}

// writeFile writes one file and replaces one of the repository.
func (fc *fileCopier) writeFile(at string, data []byte, perm fs.FileMode) error {
	if isDotGit(at) {
		return &RefusedError{Message: fmt.Sprintf("The file %q cannot be put there: .git is made by the fetch. Name another path.", at)}
	}
	staged := path.Join(stagingDir, at)
	if err := fc.parents(path.Dir(at)); err != nil {
		return inTheWay(at, err)
	}
	if err := fc.to.Remove(staged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return inTheWay(at, err)
	}
	if err := git.WriteFile(fc.to, staged, bytes.NewReader(data), perm); err != nil {
		return inTheWay(at, err)
	}
	fc.done = append(fc.done, git.Placed{Path: at, Size: int64(len(data)), Hash: plumbing.ComputeHash(plumbing.BlobObject, data).String()})
	return nil
}

// parents makes the parent directories of a file. It follows no links, because a
// link of the repository could lead anywhere in the workspace.
func (fc *fileCopier) parents(dir string) error {
	if dir == "." {
		return nil
	}
	if err := fc.parents(path.Dir(dir)); err != nil {
		return err
	}
	at := path.Join(stagingDir, dir)
	info, err := fc.to.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return git.MakeDir(fc.to, at)
	case err != nil:
		return err
	case !info.IsDir():
		return fs.ErrExist
	}
	return nil
}

// inTheWay converts an error for a name that exists to a RefusedError.
func inTheWay(at string, err error) error {
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrInvalid) {
		return &RefusedError{Message: fmt.Sprintf("The file %q cannot be put there: the repository has something else of that name, or a link, in its way. Name another path.", at)}
	}
	return err
}

// share is Fetch for a workspace that other Runs share and may be changing. The first Run that names a repository
// fetches it. Each Run copies its files once, and never over an existing file.
func share(ctx context.Context, o Options, root *os.Root, f fetched) error {
	var mine joined
	if err := load(o.State, joinedFile, &mine); err != nil {
		return err
	}
	if mine.Version > 0 {
		o.log("The workspace is as the work has left it")
		return nil
	}
	f, err := shared(ctx, o, root, f)
	if err != nil {
		return err
	}
	if err := placeFiles(ctx, o, root, f); err != nil {
		removeStaging(root)
		return err
	}
	if _, err := Begin(ctx, root, o.State); err != nil {
		return err
	}
	return save(o.State, joinedFile, joined{Version: 1})
}

// shared ensures that the repository is in the workspace. It completes the Fetch of a
// crashed Run first.
func shared(ctx context.Context, o Options, root *os.Root, f fetched) (fetched, error) {
	var err error
	if f.Stage == stageStaged {
		if f, err = finish(o, root, f); err != nil {
			return f, err
		}
	}
	switch {
	case o.Git == nil:
		return f, nil
	case f.URL != "":
		return f, f.same(o)
	}
	if f, err = stage(ctx, o, root, f); err != nil {
		removeStaging(root)
		return f, err
	}
	return finish(o, root, f)
}

// removeStaging removes stagingDir from the shared workspace.
func removeStaging(root *os.Root) { _ = root.RemoveAll(stagingDir) } // an error is not fatal

func finish(o Options, root *os.Root, f fetched) (fetched, error) {
	if err := moveStaged(o, root); err != nil {
		return f, err
	}
	f.Stage = stageDone
	return f, recordDone(o, f)
}

// same returns an error if the repository in the workspace is not the requested one.
func (f fetched) same(o Options) error {
	name, err := git.Name(o.Git.URL)
	if err != nil {
		return err
	}
	asked := o.Git.Revision
	if name == f.URL && (asked == f.Revision || asked != "" && (asked == f.Head.Branch || asked == f.Head.Tag || asked == f.Head.Commit)) {
		o.log(fmt.Sprintf("The workspace has %s at %s already, from another Run", f.URL, f.Head.Commit))
		return nil
	}
	return git.Refused("The workspace is shared, and has the repository %s at %s already, which another Run fetched; this one asks for %s at %s. Name the same repository and revision in workspace.git of both Agents, or give the node a workspace of its own.",
		f.URL, revision(f.Revision), name, revision(asked))
}

// revision returns a revision for a message.
func revision(name string) string {
	if name == "" {
		return "its default branch"
	}
	return name
}

// placeFiles copies the files of this Run, but not over existing files, which may be the work of another Run.
func placeFiles(ctx context.Context, o Options, root *os.Root, f fetched) error {
	if len(o.Files) == 0 {
		return nil
	}
	if err := clearStaging(root); err != nil {
		return err
	}
	placed, err := copyAll(ctx, o, root)
	if err != nil {
		return err
	}
	free := freePaths(root, placed)
	// Recorded before they are visible, so that Publish does not count them as changes.
	f.Version, f.Stage, f.Placed = 1, stageDone, append(f.Placed, free...)
	if err := errors.Join(flush(o.Workspace), save(o.origin(), fetchedFile, f)); err != nil {
		return fmt.Errorf("recording the files of the workspace: %w", err)
	}
	for _, p := range free {
		if err := moveOne(root, p.Path); err != nil {
			return fmt.Errorf("moving %s into place: %w", p.Path, err)
		}
	}
	if err := root.RemoveAll(stagingDir); err != nil {
		return fmt.Errorf("removing a directory: %w", err)
	}
	return flush(o.Workspace)
}

// freePaths returns the files whose paths do not exist and whose existing parents
// are directories, without duplicates.
func freePaths(root *os.Root, placed []git.Placed) []git.Placed {
	last := map[string]int{} // a later ConfigMap overrides an earlier one
	for i, p := range placed {
		last[p.Path] = i
	}
	var free []git.Placed
	for i, p := range placed {
		if _, err := root.Lstat(p.Path); last[p.Path] == i && errors.Is(err, fs.ErrNotExist) && isDirPath(root, path.Dir(p.Path)) {
			free = append(free, p)
		}
	}
	return free
}

// isDirPath reports whether all existing elements of a path are directories. A link
// is not: it could lead anywhere in the workspace.
func isDirPath(root *os.Root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			return false
		}
	}
	return true
}

// moveOne moves one staged file into place.
func moveOne(root *os.Root, at string) error {
	if dir := path.Dir(at); dir != "." {
		if err := makeDirs(root, dir); err != nil {
			return err
		}
	}
	return root.Rename(path.Join(stagingDir, at), at)
}

// makeDirs makes a directory and its parents if they do not exist.
func makeDirs(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	if err := makeDirs(root, path.Dir(dir)); err != nil {
		return err
	}
	if err := git.MakeDir(root, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
