package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// takenFile records that the session of another Run is taken over.
	takenFile = "taken.json"
	// progressPause is the time between two messages of a copy.
	progressPause = 5 * time.Second
)

// A Source is another Run whose work a Run continues.
type Source struct {
	// State, Workspace, Home and Origin are its directories, as in Options. The last two need not exist. Workspace and
	// Home are not read if the Run works on these files itself.
	State, Workspace, Home, Origin string
	task.Continue
	// Folders are the folders of a state directory with the files of the session.
	Folders []string
	// Warn is called with messages that users should see.
	Warn func(string)
}

// A taken is the record of a session that is taken over.
type taken struct {
	Version int    `json:"version"`
	RunUID  string `json:"runUID"`
}

// TakeOver copies the session of the Run that is continued, once, to the source folder of the state directory. Unless the
// files are to be fetched, it then copies the files and the clone, in the stages of Fetch, which so has nothing to do. An
// incomplete copy begins again. If the Run works on the files themselves, only the clone and the records are copied, to
// Options.Origin, once for all Runs that share the files.
//
// A journal.NotContinuedError means that the Run has no session there. A task.EndError has the reason of another failure
// that stays.
func TakeOver(ctx context.Context, o Options, s Source) error {
	root, release, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer release()
	t := &takeover{Options: o, source: s, root: root}
	ticker := time.NewTicker(progressPause)
	defer ticker.Stop()
	t.tick = ticker.C
	if err := t.session(ctx); err != nil || s.Continue.Workspace == task.ContinueFresh {
		return t.ended(err)
	}
	if s.Continue.Workspace == task.ContinueShare {
		return t.ended(t.share(ctx))
	}
	if o.Origin != "" {
		return git.Refused("Run %s cannot be continued with its files, because other Runs share the workspace of this one: set continueFrom.workspace to Fresh.", s.Run)
	}
	return t.ended(t.files(ctx))
}

// A takeover copies the work of another Run.
type takeover struct {
	Options
	source Source
	root   *os.Root
	tick   <-chan time.Time
}

// ended returns the error of a copy with what to do.
func (t *takeover) ended(err error) error {
	refused, isRefused := errors.AsType[*RefusedError](err)
	switch {
	case isRefused:
		return git.Refused("Run %s cannot be continued with its files: %s", t.source.Run, refused.Message)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		if t.source.Continue.Workspace == task.ContinueShare {
			return task.End(task.ReasonStorageFull, "The volume of Run %s, which is continued on its files, is too small for a copy of its session (%w). Enlarge its PersistentVolumeClaim, or set continueFrom.workspace to Copy, which makes one of workspace.size of the Agent", t.source.Run, err)
		}
		return task.End(task.ReasonStorageFull, "The volume is too small for the session and the files of Run %s, which is continued (%w). Raise workspace.size of the Agent, or set continueFrom.workspace to Fresh", t.source.Run, err)
	case errors.Is(err, fs.ErrPermission):
		return task.End(task.ReasonNothingToContinue, "The session and the files of Run %s cannot be read (%w): give the pods of this Agent the user and the groups of the pods of that Run, or set continueFrom.workspace to Fresh", t.source.Run, err)
	}
	return err
}

// session copies the session, if that is not recorded.
func (t *takeover) session(ctx context.Context) error {
	var done taken
	if err := load(t.State, takenFile, &done); err != nil || done.RunUID == t.source.RunUID {
		return err
	}
	if err := journal.CheckOwner(t.source.State, t.source.Run, t.source.RunUID); err != nil {
		return err
	}
	from, err := os.OpenRoot(t.source.State)
	if err != nil {
		return fmt.Errorf("opening the session of Run %s: %w", t.source.Run, err)
	}
	defer from.Close()
	to, err := emptied(t.State, task.SourceFolder)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := t.sessions(ctx, pair{from: from, to: to, path: "state"}); err != nil {
		return err
	}
	return save(t.State, takenFile, taken{Version: 1, RunUID: t.source.RunUID})
}

// sessions copies the journal of a Run with the files of its session, and those of the Runs that it continued.
func (t *takeover) sessions(ctx context.Context, p pair) error {
	keep := func(name string) bool { return journal.IsFile(name) || slices.Contains(t.source.Folders, name) }
	if err := t.copyTree(ctx, p, keep); err != nil {
		return err
	}
	from, err := p.from.OpenRoot(task.SourceFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &copyError{p.path, err}
	}
	defer from.Close()
	if err := p.to.Mkdir(task.SourceFolder, 0o700); err != nil {
		return &copyError{p.path, err}
	}
	to, err := p.to.OpenRoot(task.SourceFolder)
	if err != nil {
		return &copyError{p.path, err}
	}
	defer to.Close()
	return t.sessions(ctx, pair{from: from, to: to, path: p.path + "/" + task.SourceFolder})
}

// emptied returns an empty directory below another one.
func emptied(dir, name string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := errors.Join(removeTree(root, name), root.Mkdir(name, 0o700)); err != nil {
		return nil, fmt.Errorf("removing what an earlier attempt left half done: %w", err)
	}
	return root.OpenRoot(name)
}

// copyTree copies what keep returns true for, and tells users about it.
func (t *takeover) copyTree(ctx context.Context, p pair, keep func(string) bool) error {
	c := &treeCopy{limit: t.MaxBytes, tick: t.tick}
	c.progress = func() {
		t.source.Warn(fmt.Sprintf("Copying the %s of Run %s: %d files with %d MiB so far", p.path, t.source.Run, c.files, c.bytes>>20))
	}
	if err := c.copy(ctx, p, keep); err != nil {
		return err
	}
	t.log(fmt.Sprintf("Copied the %s of Run %s: %d files with %d bytes", p.path, t.source.Run, c.files, c.bytes))
	if c.leftOut.Count > 0 {
		t.source.Warn("Not copied, because it is neither a file nor a directory nor a link: " + c.leftOut.List(maxListed))
	}
	return nil
}

// files copies the files, from the recorded stage on.
func (t *takeover) files(ctx context.Context) error {
	var f fetched
	if err := load(t.State, fetchedFile, &f); err != nil || f.Stage == stageDone {
		return err
	}
	roots := []*os.Root{t.root}
	if t.Home != "" {
		home, err := os.OpenRoot(t.Home)
		if err != nil {
			return fmt.Errorf("opening the home directory: %w", err)
		}
		defer home.Close()
		roots = append(roots, home)
	}
	if f.Stage == "" {
		var err error
		if f, err = t.stage(ctx, roots); err != nil {
			return err
		}
	}
	for _, root := range roots {
		if err := errors.Join(move(root), flush(root.Name())); err != nil {
			return err
		}
	}
	if _, err := Begin(ctx, t.root, t.State); err != nil {
		return err
	}
	return recordDone(t.Options, f)
}

// share takes over the files as they are. Files of ConfigMaps are those of the source, as in a copy.
func (t *takeover) share(ctx context.Context) error {
	if t.Origin == "" {
		return errors.New("the directory for the records of Runs that share files is not mounted")
	}
	var mine joined
	if err := load(t.State, joinedFile, &mine); err != nil || mine.Version > 0 {
		return err
	}
	var f fetched
	if err := load(t.Origin, fetchedFile, &f); err != nil {
		return err
	}
	var err error
	switch f.Stage {
	case "":
		if f, err = t.records(ctx); err == nil {
			err = recordDone(t.Options, f)
		}
	default: // another Run has copied the records, or made them
		f, err = shared(ctx, t.withoutGit(), t.root, f)
		err = errors.Join(err, t.sameRepository(f), t.takeBranch())
	}
	if err != nil {
		return err
	}
	if _, err := Begin(ctx, t.root, t.State); err != nil {
		return err
	}
	return save(t.State, joinedFile, joined{Version: 1})
}

// withoutGit returns options with which nothing is fetched.
func (t *takeover) withoutGit() Options {
	o := t.Options
	o.Git = nil
	return o
}

// stage copies the files to the stagingDir of each root, and the clone with its records.
func (t *takeover) stage(ctx context.Context, roots []*os.Root) (fetched, error) {
	f, err := t.records(ctx)
	if err != nil {
		return f, err
	}
	for i, dir := range []string{t.source.Workspace, t.source.Home}[:len(roots)] {
		if err := t.stageTree(ctx, dir, roots[i]); err != nil {
			return f, err
		}
	}
	f.Stage = stageStaged
	return f, save(t.State, fetchedFile, f)
}

// stageTree copies one directory of files to a stagingDir.
func (t *takeover) stageTree(ctx context.Context, dir string, root *os.Root) error {
	from, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) && dir == t.source.Home {
		return nil
	}
	if err != nil {
		return &journal.NotContinuedError{Run: t.source.Run, Err: err}
	}
	defer from.Close()
	if err := clearStaging(root); err != nil {
		return err
	}
	to, err := root.OpenRoot(stagingDir)
	if err != nil {
		return err
	}
	defer to.Close()
	err = t.copyTree(ctx, pair{from: from, to: to, path: filepath.Base(dir)}, func(name string) bool { return name != stagingDir })
	return errors.Join(err, flush(root.Name()))
}

// records copies the clone and the record of its branch, and returns the record of the files.
func (t *takeover) records(ctx context.Context) (fetched, error) {
	origin := t.source.State
	if _, err := os.Stat(in(t.source.Origin, fetchedFile)); t.source.Origin != "" && err == nil {
		origin = t.source.Origin
	}
	var f fetched
	if err := load(origin, fetchedFile, &f); err != nil {
		return f, err
	}
	f.Version = 1
	if err := errors.Join(t.sameRepository(f), t.takeBranch()); err != nil {
		return f, err
	}
	to, err := emptied(in(t.origin(), ""), cloneDir)
	if err != nil {
		return f, err
	}
	defer to.Close()
	from, err := os.OpenRoot(in(origin, cloneDir))
	if errors.Is(err, fs.ErrNotExist) && f.URL == "" {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("opening the clone of Run %s: %w", t.source.Run, err)
	}
	defer from.Close()
	return f, t.copyTree(ctx, pair{from: from, to: to, path: "clone"}, nil)
}

// sameRepository refuses a repository that is not that of the files.
func (t *takeover) sameRepository(f fetched) error {
	if t.Git == nil {
		return nil
	}
	name, err := git.Name(t.Git.URL)
	if err != nil {
		return err
	}
	const advice = "Name the same repository in workspace.git, or set continueFrom.workspace to Fresh."
	switch {
	case f.URL == "":
		return git.Refused("its files are of no repository that can be copied, and this Agent asks for %s. %s", name, advice)
	case f.URL != name:
		return git.Refused("its files are of the repository %s, and this Agent asks for %s. %s", f.URL, name, advice)
	case t.Git.Revision != f.Revision:
		t.source.Warn(fmt.Sprintf("The files are those of Run %s, which began with %s of %s, and not with %s", t.source.Run, revision(f.Revision), f.URL, revision(t.Git.Revision)))
	}
	return nil
}

// takeBranch takes over which branch the Run published. A fork publishes a branch of its own.
func (t *takeover) takeBranch() error {
	var p published
	if err := load(t.source.State, publishedFile, &p); err != nil || p.Version == 0 || t.source.Step > 0 {
		return err
	}
	if p.Branch == "" { // of a runner that did not record it
		p.Branch = "deckhand/" + t.source.Run
	}
	p.Continues = t.source.Run
	return save(t.State, publishedFile, p)
}
