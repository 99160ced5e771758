package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/deckhand-dev/deckhand/runner/workspace/git"
)

// stagingDir is where a workspace is put together, in the workspace.
const stagingDir = ".deckhand-fetch"

// Fetch fills the workspace, once: where that is recorded it does nothing, and
// what is half done is thrown away or finished.
func Fetch(ctx context.Context, o Options) error {
	if err := os.MkdirAll(in(o.State, ""), 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	root, err := os.OpenRoot(o.Workspace)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	var f fetched
	if err := load(o.State, fetchedFile, &f); err != nil {
		return err
	}
	if f.Stage == stageDone {
		o.log("The workspace is as an earlier attempt left it")
		return nil
	}
	if f.Stage == "" {
		if f, err = stage(ctx, o, root); err != nil {
			return err
		}
	}
	return settle(ctx, o, root, f)
}

// Fetched says whether Fetch has nothing to reach any more: everything that is to
// be in the workspace is there, or beside it.
func Fetched(state string) bool {
	var f fetched
	return load(state, fetchedFile, &f) == nil && f.Stage != ""
}

// stage puts everything together, from nothing.
func stage(ctx context.Context, o Options, root *os.Root) (fetched, error) {
	f := fetched{Version: 1, Stage: stageStaged}
	if err := errors.Join(root.RemoveAll(stagingDir), os.RemoveAll(in(o.State, cloneDir))); err != nil {
		return f, fmt.Errorf("removing what an earlier attempt left half done: %w", err)
	}
	if err := git.MakeDir(root, stagingDir); err != nil {
		return f, fmt.Errorf("writing to the workspace: %w", err)
	}
	if o.Git != nil {
		if err := clone(ctx, o, root, &f); err != nil {
			return f, err
		}
	}
	for _, files := range o.Files {
		placed, err := copyFiles(ctx, root, files)
		if err != nil {
			return f, err
		}
		f.Placed = append(f.Placed, placed...)
	}
	if err := flush(o.Workspace); err != nil {
		return f, fmt.Errorf("writing the workspace to disk: %w", err)
	}
	return f, save(o.State, fetchedFile, f)
}

func clone(ctx context.Context, o Options, root *os.Root, f *fetched) error {
	remote, err := o.Git.reach()
	if err != nil {
		return err
	}
	f.URL = remote.URL()
	f.Head, err = remote.Clone(ctx, in(o.State, cloneDir), git.Want{Revision: o.Git.Revision, Depth: o.Git.Depth})
	if err != nil {
		return err
	}
	store, err := git.Open(in(o.State, cloneDir))
	if err != nil {
		return err
	}
	defer store.Close()
	notes, err := store.CheckOut(ctx, root, stagingDir, f.Head, f.URL)
	if err != nil {
		return err
	}
	for _, line := range append(f.Head.Notes, notes...) {
		o.log(line)
	}
	o.log(fmt.Sprintf("Fetched %s at %s", f.URL, f.Head.Commit))
	return nil
}

// settle moves what is staged into place and records that it is there.
func settle(ctx context.Context, o Options, root *os.Root, f fetched) error {
	if err := move(root); err != nil {
		return err
	}
	if err := flush(o.Workspace); err != nil {
		return fmt.Errorf("writing the workspace to disk: %w", err)
	}
	if _, err := Begin(ctx, root, o.State); err != nil {
		return err
	}
	f.Stage = stageDone
	return save(o.State, fetchedFile, f)
}

// move brings the staged files up, each by a rename. It goes on where an earlier
// one was cut off, and stops before a name that is not its own.
func move(root *os.Root) error {
	staged, err := fs.ReadDir(root.FS(), stagingDir)
	if errors.Is(err, fs.ErrNotExist) { // all are there
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what was fetched: %w", err)
	}
	for _, e := range staged {
		if _, err := root.Lstat(e.Name()); !errors.Is(err, fs.ErrNotExist) {
			return &RefusedError{Message: fmt.Sprintf("The workspace has %q already, which was not fetched by this Run: give the Run a volume of its own.", e.Name())}
		}
		if err := root.Rename(stagingDir+"/"+e.Name(), e.Name()); err != nil {
			return fmt.Errorf("moving what was fetched into place: %w", err)
		}
	}
	if err := root.Remove(stagingDir); err != nil {
		return fmt.Errorf("removing an empty directory: %w", err)
	}
	return nil
}
