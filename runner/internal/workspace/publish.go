package workspace

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
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

// maxLeftOut bounds the names in Published.LeftOut, in bytes.
const maxLeftOut = 100

// unchanged is the result without a commit. Work that no commit can have is no success.
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

// prepare reads what was fetched and published before.
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
		return "", git.Refused("The branch %q is there already, at %s, which this Run did not publish: delete the branch, or start a Run of another name.", p.o.Branch, tip)
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

// recordCommit records the commit before it is pushed, because the answer of the
// server may be lost.
func (p *publishing) recordCommit() error {
	if slices.Contains(p.earlier.Commits, p.commit) {
		return nil
	}
	p.earlier.Version = 1
	p.earlier.Commits = append(p.earlier.Commits, p.commit)
	p.earlier.Commits = p.earlier.Commits[max(len(p.earlier.Commits)-maxCommits, 0):]
	if err := save(p.o.State, publishedFile, p.earlier); err != nil {
		return fmt.Errorf("recording what is published: %w", err)
	}
	return nil
}
