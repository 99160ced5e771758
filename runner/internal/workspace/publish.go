package workspace

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Publish makes one commit of the workspace and pushes it as a branch. It is
// idempotent, so it can be retried after an error or a crash. A RefusedError says
// what a user must do. Runs that share a workspace are serialized.
func Publish(ctx context.Context, o PublishOptions) (Published, error) {
	p := publishing{o: o}
	if err := p.prepare(); err != nil {
		return Published{}, err
	}
	release, err := lock(ctx, in(o.origin(), publishLock), func() {})
	if err != nil {
		return Published{}, err
	}
	defer release()
	store, err := git.Open(in(o.origin(), cloneDir))
	if err != nil {
		return Published{}, err
	}
	defer store.Close()
	p.store = store
	if err := p.compare(ctx); err != nil {
		return Published{}, err
	}
	if p.files == 0 && len(p.earlier.Commits) == 0 {
		return p.unchanged()
	}
	if err := p.remote.Push(ctx, store, o.Branch, p.next); err != nil {
		return Published{}, err
	}
	if p.commit == "" {
		return p.unchanged()
	}
	return Published{Branch: o.Branch, Commit: p.commit, Files: p.files, LeftOut: p.left.List(maxLeftOut)}, nil
}

// Branch returns the branch that was published before from a state directory; empty: none.
func Branch(state string) (string, error) {
	var p published
	err := load(state, publishedFile, &p)
	return p.Branch, err
}

// maxLeftOut bounds the names in Published.LeftOut, in bytes.
const maxLeftOut = 100

// unchanged returns the result without a commit. It is an error if files changed that no commit can have.
func (p *publishing) unchanged() (Published, error) {
	if p.left.Count > 0 {
		return Published{}, git.Refused("Only files of Git LFS (filter=lfs in .gitattributes) were changed, which cannot be published: %s. "+
			"Push them yourself, or remove filter=lfs for them and start another Run.", p.left.List(maxListed))
	}
	return Published{Unchanged: true}, nil
}

// A publishing is the state of one Publish.
type publishing struct {
	o       PublishOptions
	from    fetched
	earlier published
	remote  *git.Remote
	store   *git.Store

	tree   string // of the workspace, without what cannot be published
	left   git.Paths
	files  int    // number that differ from what was fetched
	commit string // that the branch should have; empty: no branch
}

// prepare reads the records of what was fetched and published before.
func (p *publishing) prepare() error {
	if p.o.Git == nil {
		return git.Refused("The workspace has no git repository, so there is nowhere to publish to: give it one, or do not publish.")
	}
	if err := load(p.o.origin(), fetchedFile, &p.from); err != nil {
		return err
	}
	if p.from.Stage != stageDone || p.from.URL == "" {
		return git.Refused("The repository was never fetched, so nothing can be published: start another Run.")
	}
	remote, err := p.o.Git.remote()
	if err != nil {
		return err
	}
	if p.remote = remote; remote.URL() != p.from.URL {
		return git.Refused("The work was fetched from %s and is not published to %s: set the URL back, or start another Run.", p.from.URL, remote.URL())
	}
	return load(p.o.State, publishedFile, &p.earlier)
}

// compare makes the tree of the workspace and counts the changes.
func (p *publishing) compare(ctx context.Context) error {
	limits := git.Limits{Bytes: cmp.Or(p.o.MaxBytes, DefaultMaxBytes), Files: cmp.Or(p.o.MaxFiles, DefaultMaxFiles)}
	release, err := lock(ctx, in(p.o.origin(), fetchLock), func() {})
	if err != nil {
		return err
	}
	defer release()
	if p.o.Origin != "" {
		removeStaging(p.o.Workspace) // what a crashed Run has left
	}
	tree, err := p.store.Snapshot(ctx, p.o.Workspace, git.Basis{Commit: p.from.Head.Commit, Placed: p.from.Placed}, limits)
	if err != nil {
		return err
	}
	base, err := p.store.Tree(p.from.Head.Commit)
	if err != nil {
		return err
	}
	if p.tree, p.left, err = p.store.WithoutLFS(base, tree); err != nil {
		return err
	}
	p.files, err = p.store.Changes(base, p.tree)
	return err
}

// next returns the commit for the branch, whose current commit is tip. It refuses if
// another Run or a user has pushed tip.
func (p *publishing) next(tip string) (string, error) {
	parent := p.from.Head.Commit
	switch {
	case tip == "" && p.files == 0:
		return "", nil
	case tip != "" && !slices.Contains(p.earlier.Commits, tip):
		return "", p.foreign(tip)
	case tip != "":
		parent = tip
	}
	tree, err := p.store.Tree(parent)
	if err != nil {
		return "", err
	}
	if tree == p.tree {
		p.commit = parent
		return parent, nil
	}
	p.commit, err = p.store.Commit(git.Commit{Tree: p.tree, Parent: parent, Message: p.o.Message, Author: p.o.Author})
	if err != nil {
		return "", err
	}
	return p.commit, p.recordCommit()
}

// foreign refuses the commit of a branch that no Run of this chain has pushed.
func (p *publishing) foreign(tip string) error {
	if from := p.earlier.Continues; from != "" {
		return git.Refused("The branch %q is at %s, which neither this Run nor Run %s published: delete the branch, or continue from a step (continueFrom.step) to publish a branch of its own.", p.o.Branch, tip, from)
	}
	return git.Refused("The branch %q is there already, at %s, which this Run did not publish: delete the branch, or start a Run of another name.", p.o.Branch, tip)
}

// recordCommit records the commit before it is pushed, because the answer of the
// server may be lost.
func (p *publishing) recordCommit() error {
	if slices.Contains(p.earlier.Commits, p.commit) {
		return nil
	}
	p.earlier.Version, p.earlier.Branch = 1, p.o.Branch
	p.earlier.Commits = append(p.earlier.Commits, p.commit)
	p.earlier.Commits = p.earlier.Commits[max(len(p.earlier.Commits)-maxCommits, 0):]
	if err := save(p.o.State, publishedFile, p.earlier); err != nil {
		return fmt.Errorf("recording what is published: %w", err)
	}
	return nil
}

const (
	// maxNames bounds the directory entries that are visited.
	maxNames = 1_000_000
	// maxDepth bounds the depth of directories.
	maxDepth = 200
	// dirFlags open a directory, without blocking if a named pipe has replaced it.
	dirFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_DIRECTORY
)

// A found is a file that is new or changed.
type found struct {
	name string
	info fs.FileInfo
}

// newestFirst orders by modification time, then by size, both descending.
func newestFirst(a, b found) int {
	return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(b.info.Size(), a.info.Size()), strings.Compare(a.name, b.name))
}

// Artifacts returns the files of the workspace that are new or changed since the manifest: at most task.MaxFiles,
// newest first, with the paths that the model uses. more counts the others, including those whose names cannot be
// shown. Links are not followed, and .git directories are skipped.
func Artifacts(ctx context.Context, root *os.Root, since Manifest) (files []task.File, more int, err error) {
	var best []found
	_, err = eachFile(ctx, root, func(name string, info fs.FileInfo) {
		if since.has(name, info) {
			return
		}
		if !shown(name) {
			more++
			return
		}
		one := found{name: name, info: info}
		at, _ := slices.BinarySearchFunc(best, one, newestFirst)
		best = slices.Insert(best, at, one)
		if len(best) > task.MaxFiles {
			best = best[:task.MaxFiles]
			more++
		}
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing the workspace: %w", err)
	}
	for _, one := range best {
		files = append(files, task.File{Path: path.Join(task.Workspace, one.name), Size: one.info.Size()})
	}
	return files, more, nil
}

// shown reports whether a name can be in the status: not too long, and printable text
// in one line.
func shown(name string) bool {
	return len(task.Workspace)+1+len(name) <= task.MaxPath && utf8.ValidString(name) &&
		!strings.ContainsAny(name, "\n\t") && redact.Printable(name) == name
}

// A fileWalk visits the files of a workspace once.
type fileWalk struct {
	root  *os.Root
	visit func(string, fs.FileInfo)
	names int
}

// eachFile visits regular files, in no order. It skips files that cannot be read. It
// returns false if there are more than maxNames.
func eachFile(ctx context.Context, root *os.Root, visit func(string, fs.FileInfo)) (whole bool, err error) {
	r := &fileWalk{root: root, visit: visit}
	err = r.directory(ctx, ".")
	return r.names < maxNames, err
}

func (fw *fileWalk) directory(ctx context.Context, dir string) error {
	if strings.Count(dir, "/") > maxDepth {
		return nil
	}
	f, err := fw.root.OpenFile(dir, dirFlags, 0)
	if err != nil {
		return ctx.Err()
	}
	defer f.Close()
	for name, err := range git.Names(f) {
		if err != nil {
			break // skip what cannot be read
		}
		if fw.names++; fw.names >= maxNames {
			break
		}
		if err := fw.entry(ctx, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (fw *fileWalk) entry(ctx context.Context, name string) error {
	info, err := fw.root.Lstat(name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return nil //nolint:nilerr // it was removed
	case info.IsDir() && path.Base(name) != ".git":
		return fw.directory(ctx, name)
	case info.Mode().IsRegular():
		fw.visit(name, info)
	}
	return nil
}

// WriteArchive writes a file or directory below dir as a tar archive. The first entry is that
// file or directory; names of other entries are relative to it. Symbolic links are followed
// only to find name, and never out of dir; below it they are written as links. Devices,
// sockets and pipes are left out. Files in a directory that the user may not read are left out,
// too: the archive has all others, and the error names them.
func WriteArchive(w io.Writer, dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist in the workspace", name)
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	}
	a := &archive{tar: tar.NewWriter(w)}
	if info.IsDir() {
		below, err := root.OpenRoot(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		defer below.Close()
		a.root = below
		err = fs.WalkDir(below.FS(), ".", a.add)
		return errors.Join(err, a.tar.Close(), a.unreadableError())
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}
	a.root = root
	return errors.Join(a.writeFile(name, path.Base(name)), a.tar.Close())
}

// An archive is a tar archive that is being written.
type archive struct {
	tar  *tar.Writer
	root *os.Root
	// unreadable are the names that the user may not read.
	unreadable []string
}

func (a *archive) unreadableError() error {
	const most = 10
	names := a.unreadable[:min(len(a.unreadable), most)]
	switch more := len(a.unreadable) - len(names); {
	case len(names) == 0:
		return nil
	case more > 0:
		return fmt.Errorf("permission denied to read %s and %d more; all other files are sent", strings.Join(names, ", "), more)
	}
	return fmt.Errorf("permission denied to read %s; all other files are sent", strings.Join(names, ", "))
}

// add writes an entry of the walk. A file that was deleted meanwhile is left out.
func (a *archive) add(name string, entry fs.DirEntry, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && name != ".":
		a.unreadable = append(a.unreadable, name)
		return nil // a walk goes on beside a directory that it cannot read
	case err != nil:
		return err
	}
	switch kind := entry.Type(); {
	case kind.IsDir():
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case kind == fs.ModeSymlink:
		target, err := a.root.Readlink(name)
		if err != nil {
			return nil //nolint:nilerr // it was deleted or replaced meanwhile
		}
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
	case kind.IsRegular():
		err := a.writeFile(name, name)
		if errors.Is(err, fs.ErrPermission) {
			a.unreadable = append(a.unreadable, name)
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writeFile writes a file under another name. If it shrinks meanwhile, the archive is useless.
func (a *archive) writeFile(name, as string) error {
	f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(a.tar, f, info.Size()); err != nil {
		return fmt.Errorf("%s changed while it was read: try again: %w", name, err)
	}
	return nil
}
