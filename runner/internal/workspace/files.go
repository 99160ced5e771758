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
func (p *fileCopier) directory(ctx context.Context, dir string) error {
	entries, err := fs.ReadDir(p.from.FS(), dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if err := errors.Join(ctx.Err(), p.entry(ctx, path.Join(dir, e.Name()))); err != nil {
			return err
		}
	}
	return nil
}

func (p *fileCopier) entry(ctx context.Context, name string) error {
	info, err := p.from.Stat(name)
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return p.directory(ctx, name)
	case !info.Mode().IsRegular():
		return nil
	}
	data, err := p.read(name)
	if err != nil {
		return err
	}
	return p.writeFile(path.Join(p.files.Path, name), data, info.Mode().Perm()&0o111|0o664)
}

func (p *fileCopier) read(name string) ([]byte, error) {
	f, err := p.from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxPlacedBytes-p.bytes+1))
	if p.bytes += int64(len(data)); p.bytes > maxPlacedBytes || len(p.done) >= maxPlacedFiles {
		return nil, &RefusedError{Message: fmt.Sprintf("The files for %q are more than %d bytes or %d files: bring so much by git or an image.", p.files.Path, maxPlacedBytes, maxPlacedFiles)}
	}
	return data, err
}

// writeFile writes one file and replaces one of the repository.
func (p *fileCopier) writeFile(at string, data []byte, perm fs.FileMode) error {
	if isDotGit(at) {
		return &RefusedError{Message: fmt.Sprintf("The file %q cannot be put there: .git is made by the fetch. Name another path.", at)}
	}
	staged := path.Join(stagingDir, at)
	if err := p.parents(path.Dir(at)); err != nil {
		return inTheWay(at, err)
	}
	if err := p.to.Remove(staged); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return inTheWay(at, err)
	}
	if err := git.WriteFile(p.to, staged, bytes.NewReader(data), perm); err != nil {
		return inTheWay(at, err)
	}
	p.done = append(p.done, git.Placed{Path: at, Size: int64(len(data)), Hash: plumbing.ComputeHash(plumbing.BlobObject, data).String()})
	return nil
}

// parents makes the parent directories of a file. It follows no links, because a
// link of the repository could lead anywhere in the workspace.
func (p *fileCopier) parents(dir string) error {
	if dir == "." {
		return nil
	}
	if err := p.parents(path.Dir(dir)); err != nil {
		return err
	}
	at := path.Join(stagingDir, dir)
	info, err := p.to.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return git.MakeDir(p.to, at)
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
