// Package runner is the program that does the work of one Run: in its pod (Main), on a machine without a cluster
// (MainLocal), or inside of a Go program (New). Each is one call, so that a runner with models or tools of its own is a
// main package of a few lines:
//
//	func main() {
//		os.Exit(runner.Main(runner.WithModel("acme", acme.New)))
//	}
//
// What one attempt does is in package attempt, below internal.
package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/gomemlimit"
	"github.com/deckhand-dev/deckhand/runner/internal/attempt"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/registry"
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

// An Option adds a model, tool, layer, directory, store or listener to a runner. If two options have the same name,
// each attempt ends with reason Misconfigured.
type Option struct {
	add func(*config.Registry) error
}

// WithModel adds a model, which a Model names: provider: Custom, custom: {driver: NAME}.
func WithModel(driver string, f registry.ModelFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddModel(driver, f) }}
}

// WithTool adds tools, which an Agent lists as custom: NAME.
func WithTool(name string, f registry.ToolFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddTool(name, f) }}
}

// WithLayer adds a layer around the model and tool calls of every agent.
func WithLayer(f registry.LayerFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddLayer(f) }}
}

// WithBackend adds files that every agent sees below a path. /workspace, /tmp and
// /memories replace the built-in ones.
func WithBackend(path string, f registry.BackendFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddBackend(path, f) }}
}

// WithStore copies each session to a store.
func WithStore(f registry.StoreFactory) Option {
	return Option{func(r *config.Registry) error { return r.AddStore(f) }}
}

// WithListener adds a listener that receives each event as it happens, in order. Secrets
// are not redacted in these events. If the listener is slow, it misses events; nothing
// waits for it.
func WithListener(f registry.Listener) Option {
	return Option{func(r *config.Registry) error { return r.AddListener(f) }}
}

// registryOf returns the function that applies the options. It returns the errors of all of them.
func registryOf(options []Option) attempt.Registry {
	return func() (*config.Registry, error) {
		r := config.NewRegistry()
		var errs []error
		for _, o := range options {
			if o.add != nil { // the zero Option adds nothing
				errs = append(errs, o.add(r))
			}
		}
		return r, errors.Join(errs...)
	}
}
