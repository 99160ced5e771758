package workspace

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

// A RefusedError means that a user has to change something, which its message says.
// Other errors of this package may be transient.
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
	// MaxBytes bounds the files of the repository, as git.Target does. Zero: no bound.
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
	// Files counts the files that differ from what was fetched.
	Files int
	// LeftOut names the changed files of Git LFS, which a commit cannot have, in at most
	// about 120 bytes; empty: there are none.
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
