package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/gomemlimit"
	"github.com/deckhand-dev/deckhand/runner/internal/attempt"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Main is the program of a runner pod. With one argument it is also the program of the
// container that prepares the workspace, and of the liveness probe. It takes no flags.
// Except for the probe and for sending files it runs only as the first process of its
// container: a user who may exec into the pod must not be able to start a second runner with
// another task.
func Main(options ...Option) int {
	if len(os.Args) == 2 && os.Args[1] == task.LivenessMode {
		return attempt.Probe(task.TerminationLog, clock.Now())
	}
	if len(os.Args) == 3 && os.Args[1] == task.FilesMode {
		return attempt.SendFiles(os.Stdout, os.Stderr, task.Workspace, os.Args[2])
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "This program is the first process of a runner pod and nothing else; by hand, use runner-local.")
		return task.ExitBadTask
	}
	if len(os.Args) == 2 && os.Args[1] == task.FilesMode {
		return attempt.WaitForTermination()
	}
	// The runner, the sandbox and fetch share a group; each may change the files
	// of the others.
	syscall.Umask(0o002)
	gomemlimit.Fit()
	trust(task.CAFile)
	if len(os.Args) == 2 && os.Args[1] == task.FetchMode {
		return attempt.Fetch(attempt.InPod())
	}
	return attempt.Main(attempt.InPod(), registryOf(options))
}

// trust adds a bundle of certificates to the system's, if there is one. It is called before the first connection.
func trust(bundle string) {
	if _, err := os.Stat(bundle); err == nil {
		_ = os.Setenv("SSL_CERT_DIR", systemCertificates+":"+filepath.Dir(bundle)) // a name without "=": cannot fail
	}
}

// systemCertificates is the directory where images have their trusted certificates.
const systemCertificates = "/etc/ssl/certs"
