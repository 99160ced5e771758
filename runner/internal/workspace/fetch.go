package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// stagingDir is the directory for staging, in the workspace.
const stagingDir = ".deckhand-fetch"

// Fetch initializes the workspace once. If that is recorded it does nothing; an
// incomplete Fetch is discarded or completed. Concurrent calls for the same
// workspace are serialized.
func Fetch(ctx context.Context, o Options) error {
	root, release, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	var f fetched
	if err := load(o.origin(), fetchedFile, &f); err != nil {
		return err
	}
	if o.Origin != "" {
		return share(ctx, o, root, f)
	}
	return fill(ctx, o, root, f)
}

// open makes the state directory, and opens and locks the workspace.
func (o Options) open(ctx context.Context) (root *os.Root, release func(), err error) {
	if err := errors.Join(os.MkdirAll(in(o.State, ""), 0o700), os.MkdirAll(in(o.origin(), ""), 0o700)); err != nil {
		return nil, nil, fmt.Errorf("making the state directory: %w", err)
	}
	if root, err = os.OpenRoot(o.Workspace); err != nil {
		return nil, nil, fmt.Errorf("opening the workspace: %w", err)
	}
	unlock, err := lock(ctx, in(o.origin(), fetchLock), func() { o.log("Waiting for another Run that prepares the workspace") })
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, func() { unlock(); _ = root.Close() }, nil
}

// fill is Fetch for a workspace that is not shared.
func fill(ctx context.Context, o Options, root *os.Root, f fetched) error {
	if f.Stage == stageDone {
		o.log("The workspace is as an earlier attempt left it")
		return nil
	}
	if f.Stage == "" {
		var err error
		if f, err = stage(ctx, o, root, f); err != nil {
			return err
		}
	}
	if err := moveStaged(o, root); err != nil {
		return err
	}
	if _, err := Begin(ctx, root, o.State); err != nil {
		return err
	}
	return recordDone(o, f)
}

// Fetched reports whether the repository has been cloned, so that Fetch does not need it any more. origin is
// Options.Origin or else Options.State.
func Fetched(origin string) bool {
	var f fetched
	return load(origin, fetchedFile, &f) == nil && f.URL != ""
}

// Missing describes, for the agent and for users, what the workspace lacks of its repository; nil: it is complete.
// origin is Options.Origin or else Options.State.
func Missing(origin string) ([]string, error) {
	var f fetched
	err := load(origin, fetchedFile, &f)
	return missingLines(f.Missing), err
}

// Bounds of messages about missing files: the paths in one line, in bytes, and the lines about submodules.
const (
	maxListed     = 512
	maxSubmodules = 5
)

func missingLines(m git.Missing) []string {
	var lines []string
	if m.Pointers.Count > 0 {
		lines = append(lines, "The content of files of Git LFS is not fetched. A pointer, a short text, is in its place: "+m.Pointers.List(maxListed))
	}
	names := m.Submodules.Names
	for _, name := range names[:min(len(names), maxSubmodules)] {
		lines = append(lines, "The submodule "+name+" is not fetched: its directory is empty")
	}
	if more := m.Submodules.Count - maxSubmodules; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more submodules are not fetched", more))
	}
	return lines
}

// stage clones and copies everything into stagingDir.
func stage(ctx context.Context, o Options, root *os.Root, f fetched) (fetched, error) {
	f.Version, f.Stage = 1, stageStaged
	if err := os.RemoveAll(in(o.origin(), cloneDir)); err != nil {
		return f, fmt.Errorf("removing what an earlier attempt left half done: %w", err)
	}
	if err := clearStaging(root); err != nil {
		return f, err
	}
	if o.Git != nil {
		if err := clone(ctx, o, root, &f); err != nil {
			return f, err
		}
	}
	placed, err := copyAll(ctx, o, root)
	if err != nil {
		return f, err
	}
	f.Placed = append(f.Placed, placed...)
	if _, err := stagedEntries(root); err != nil {
		return f, err
	}
	if err := flush(o.Workspace); err != nil {
		return f, fmt.Errorf("writing the workspace to disk: %w", err)
	}
	return f, save(o.origin(), fetchedFile, f)
}

// clearStaging makes an empty stagingDir.
func clearStaging(root *os.Root) error {
	if err := removeTree(root, stagingDir); err != nil {
		return fmt.Errorf("removing what an earlier attempt left half done: %w", err)
	}
	if err := git.MakeDir(root, stagingDir); err != nil {
		return fmt.Errorf("writing to the workspace: %w", err)
	}
	return nil
}

func copyAll(ctx context.Context, o Options, root *os.Root) ([]git.Placed, error) {
	var all []git.Placed
	for _, files := range o.Files {
		placed, err := copyFiles(ctx, root, files)
		if err != nil {
			return nil, err
		}
		all = append(all, placed...)
	}
	return all, nil
}

func clone(ctx context.Context, o Options, root *os.Root, f *fetched) error {
	remote, err := o.Git.remote()
	if err != nil {
		return err
	}
	f.URL, f.Revision = remote.URL(), o.Git.Revision
	f.Head, err = remote.Clone(ctx, in(o.origin(), cloneDir), git.Want{Revision: o.Git.Revision, Depth: o.Git.Depth})
	if err != nil {
		return err
	}
	store, err := git.Open(in(o.origin(), cloneDir))
	if err != nil {
		return err
	}
	defer store.Close()
	f.Missing, err = store.CheckOut(ctx, git.Target{Root: root, Under: stagingDir, MaxBytes: o.MaxBytes}, f.Head, f.URL)
	if err != nil {
		return err
	}
	for _, line := range append(f.Head.Notes, missingLines(f.Missing)...) {
		o.log(line)
	}
	o.log(fmt.Sprintf("Fetched %s at %s", f.URL, f.Head.Commit))
	return nil
}

// moveStaged moves the staged files into place and flushes them to disk.
func moveStaged(o Options, root *os.Root) error {
	if err := move(root); err != nil {
		return err
	}
	if err := flush(o.Workspace); err != nil {
		return fmt.Errorf("writing the workspace to disk: %w", err)
	}
	return nil
}

// recordDone records that all files are in place.
func recordDone(o Options, f fetched) error {
	f.Stage = stageDone
	return save(o.origin(), fetchedFile, f)
}

// move renames each staged entry into the workspace. It continues an interrupted
// move, and refuses if a name exists already.
func move(root *os.Root) error {
	staged, err := stagedEntries(root)
	if errors.Is(err, fs.ErrNotExist) { // all were moved
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range staged {
		if err := moveEntry(root, e.Name()); err != nil {
			return fmt.Errorf("moving what was fetched into place: %w", err)
		}
	}
	if err := root.Remove(stagingDir); err != nil {
		return fmt.Errorf("removing an empty directory: %w", err)
	}
	return nil
}

// moveEntry moves one staged entry. A directory can only be moved while it is not read-only.
func moveEntry(root *os.Root, name string) error {
	staged := stagingDir + "/" + name
	info, err := root.Lstat(staged)
	if err != nil {
		return err
	}
	const writable = 0o200
	if !info.IsDir() || info.Mode()&writable != 0 {
		return root.Rename(staged, name)
	}
	if err := root.Chmod(staged, info.Mode()|writable); err != nil {
		return err
	}
	return errors.Join(root.Rename(staged, name), root.Chmod(name, info.Mode()))
}

// stagedEntries returns the staged entries. It refuses if a name exists already.
func stagedEntries(root *os.Root) ([]fs.DirEntry, error) {
	staged, err := fs.ReadDir(root.FS(), stagingDir)
	if err != nil {
		return nil, fmt.Errorf("reading what was fetched: %w", err)
	}
	for _, e := range staged {
		if _, err := root.Lstat(e.Name()); !errors.Is(err, fs.ErrNotExist) {
			return nil, &RefusedError{Message: fmt.Sprintf("The workspace has %q already, which was not fetched by this Run: give the Run a volume of its own.", e.Name())}
		}
	}
	return staged, nil
}

// A RefusedError means that a user must change something, which its message describes. Other errors of this package may
// be transient.
type RefusedError = git.RefusedError

// Git is the repository of a workspace.
type Git struct {
	// URL is https, http, ssh, or user@host:path, without credentials.
	URL string
	// Revision is a branch, a tag or a commit; empty: the default branch.
	Revision string
	// Depth is the depth of a shallow clone; 0: the complete history.
	Depth int
	// Credentials is the directory of a mounted Secret of type
	// kubernetes.io/basic-auth, or of type kubernetes.io/ssh-auth with the key
	// known_hosts. Empty: none.
	Credentials string
	// CABundle are additional trusted certificates in PEM.
	CABundle []byte
}

func (g *Git) remote() (*git.Remote, error) {
	return git.NewRemote(git.Access{URL: g.URL, Credentials: g.Credentials, CABundle: g.CABundle})
}

// Files are the files of one ConfigMap.
type Files struct {
	// Dir is the directory where it is mounted.
	Dir string
	// Path is the directory in the workspace to copy to.
	Path string
}

// Options configure Fetch.
type Options struct {
	// Workspace is the directory to initialize.
	Workspace string
	// State is a directory that only the runner can access. It may be on the same
	// volume.
	State string
	// Origin is the directory for the clone and the record of Runs that share a
	// workspace. Default: State.
	Origin string
	// Home is the home directory of commands, for TakeOver; empty: there is none.
	Home string
	// MaxBytes bounds the files of the repository, as git.Target does, and each directory that is copied. Zero: no bound.
	MaxBytes int64
	// Git may be nil.
	Git   *Git
	Files []Files
	// Log, if not nil, is called with messages for users.
	Log func(string)
}

func (o Options) origin() string { return cmp.Or(o.Origin, o.State) }

func (o Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

// Author is the author of a commit, and its time.
type Author = git.Author

// Defaults of PublishOptions.
const (
	DefaultMaxBytes = 512 << 20
	DefaultMaxFiles = 100_000
)

// PublishOptions configure Publish.
type PublishOptions struct {
	// Workspace is the directory to publish.
	Workspace *os.Root
	// State and Origin are as in Options.
	State, Origin string
	Git           *Git
	// Branch is the name of the branch, without refs/heads/.
	Branch string
	// Message and Author of the commit.
	Message string
	Author  Author
	// MaxBytes bounds the total size of new and changed files, MaxFiles the number of
	// all files. Zero: the defaults.
	MaxBytes int64
	MaxFiles int
}

// Published is the result of Publish.
type Published struct {
	// Branch and Commit are what was pushed; empty if Unchanged.
	Branch, Commit string
	// Files counts the files that differ from the fetched ones.
	Files int
	// LeftOut names the changed files of Git LFS, which a commit cannot have, in at most about 120 bytes; empty: there
	// are none.
	LeftOut string
	// Unchanged is true if no file differs and nothing was published before.
	Unchanged bool
}

func (o PublishOptions) origin() string { return cmp.Or(o.Origin, o.State) }

// Names in the state directory, all below stateDir. The first are shared by Runs
// that share a workspace.
const (
	stateDir      = "workspace"
	cloneDir      = "git"
	fetchedFile   = "fetched.json"
	fetchLock     = "fetch.lock"
	publishLock   = "publish.lock"
	joinedFile    = "joined.json"
	publishedFile = "published.json"
	manifestFile  = "manifest.jsonl"
)

// in returns a path in the state directory.
func in(state, name string) string { return filepath.Join(state, stateDir, name) }
