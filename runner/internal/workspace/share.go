package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// share is Fetch for a workspace that other Runs share and may be changing. The
// first Run that names a repository fetches it. Each Run copies its files once, and
// only where no file exists.
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

// same refuses if the repository in the workspace is not the requested one.
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

// placeFiles copies the files of this Run where no file exists. Existing files may
// be the work of another Run.
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
