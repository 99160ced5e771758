package workspace

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// A RefusedError says that something cannot be done until a person has changed
// something, and what. Any other error of this package may pass when tried again.
type RefusedError = git.RefusedError

// Git is the repository of a workspace.
type Git struct {
	// URL is https, http, ssh, or user@host:path; it holds no credentials.
	URL string
	// Revision is a branch, a tag or a commit; empty: the default branch.
	Revision string
	// Depth is how many commits of the history to have; 0: all.
	Depth int
	// Credentials is the directory of a mounted Secret of type
	// kubernetes.io/basic-auth, or of type kubernetes.io/ssh-auth with known_hosts
	// besides. Empty: none.
	Credentials string
	// CABundle are certificates, in PEM, that are trusted besides the system's.
	CABundle []byte
}

func (g *Git) reach() (*git.Remote, error) {
	return git.Reach(git.Access{URL: g.URL, Credentials: g.Credentials, CABundle: g.CABundle})
}

// Files are those of one ConfigMap.
type Files struct {
	// Dir is where it is mounted.
	Dir string
	// Path is the directory below the workspace that its files are copied to.
	Path string
}

// Options are what Fetch needs.
type Options struct {
	// Workspace is the directory to fill.
	Workspace string
	// State is a directory that only the runner sees; both may be on one volume.
	State string
	// Origin is another such directory, for Runs that have one workspace and each a
	// State of its own: it holds what was fetched, and they share it. Empty: State
	// holds that.
	Origin string
	// Git may be nil.
	Git   *Git
	Files []Files
	// Log is told what people may want to know; nil: nobody is.
	Log func(string)
}

func (o Options) origin() string { return cmp.Or(o.Origin, o.State) }

func (o Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}

// Author is who a commit says it is of, and when.
type Author = git.Author

// Bounds of what is published where PublishOptions say nothing.
const (
	DefaultMaxBytes = 512 << 20
	DefaultMaxFiles = 100_000
)

// PublishOptions are what Publish needs.
type PublishOptions struct {
	// Workspace is the root of the files.
	Workspace *os.Root
	// State and Origin are the directories that Fetch was given.
	State, Origin string
	Git           *Git
	// Branch is the name to publish under, without refs/heads/.
	Branch string
	// Message and Author are of the commit.
	Message string
	Author  Author
	// MaxBytes bounds the files that are new or changed, together, and MaxFiles how
	// many there may be in all; 0: the defaults.
	MaxBytes int64
	MaxFiles int
}

// Published is what has become of a workspace.
type Published struct {
	// Branch and Commit are where the work is; empty when Unchanged.
	Branch, Commit string
	// Files is how many files differ from what was fetched.
	Files int
	// Unchanged is true where nothing differs, and nothing was ever published.
	Unchanged bool
}

func (o PublishOptions) origin() string { return cmp.Or(o.Origin, o.State) }

// Names in the state directory, all below one directory. The first are those of
// what Runs share.
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

// in is a path in the state directory.
func in(state, name string) string { return filepath.Join(state, stateDir, name) }
