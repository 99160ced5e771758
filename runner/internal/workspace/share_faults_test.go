package workspace_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
)

// What one Run left half done the next finishes, wherever the first died.
func TestWhatOneRunLeftTheNextFinishes(t *testing.T) {
	for name, tc := range map[string]struct {
		broken func(t *testing.T, at *shared)
		clones int
	}{
		"before anything was recorded": {func(t *testing.T, at *shared) {
			must(t, os.Remove(filepath.Join(at.origin, "workspace", "fetched.json")))
			for _, name := range []string{".git", "src", "README.md"} {
				must(t, os.RemoveAll(filepath.Join(at.dir, name)))
			}
			write(t, at.dir, map[string]string{".deckhand-fetch/half": "x"})
		}, 2},
		"while it moved files into place": {func(t *testing.T, at *shared) {
			record := filepath.Join(at.origin, "workspace", "fetched.json")
			data, err := os.ReadFile(record)
			must(t, err)
			must(t, os.WriteFile(record, []byte(strings.Replace(string(data), `"Done"`, `"Staged"`, 1)), 0o600))
			must(t, os.Mkdir(filepath.Join(at.dir, ".deckhand-fetch"), 0o755))
			must(t, os.Rename(filepath.Join(at.dir, "src"), filepath.Join(at.dir, ".deckhand-fetch", "src")))
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, at := serve(t, small), newShared(t)
			at.run(s.git()).fetch(t)
			tc.broken(t, at)
			must(t, workspace.Fetch(t.Context(), at.run(s.git()).options()))
			if diff := cmp.Diff(small, tree(t, at.dir)); diff != "" || s.clones() != tc.clones {
				t.Errorf("%d clones, the workspace -want +got:\n%s", s.clones(), diff)
			}
			if got := run(t, at.dir, "status", "--porcelain"); got != "" {
				t.Errorf("git status says %q", got)
			}
		})
	}
}

// A server that is away for one is asked again by the next.
func TestAFetchThatFailedLeavesNothing(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	s.wrapper = func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	}
	if err := workspace.Fetch(t.Context(), at.run(s.git()).options()); err == nil {
		t.Fatal("it worked")
	}
	if got := tree(t, at.dir); len(got) > 0 {
		t.Errorf("left are %v", got)
	}
	s.wrapper = nil
	at.run(s.git()).fetch(t)
	if diff := cmp.Diff(small, tree(t, at.dir)); diff != "" {
		t.Errorf("the workspace -want +got:\n%s", diff)
	}
}

// Who cannot wait any longer for another gives up.
func TestWaitingForAnotherRunHasAnEnd(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	first := at.run(s.git()).joined(t)
	write(t, at.dir, map[string]string{"work": "done"})
	later := at.run(s.git())
	fetching := func(ctx context.Context) error { return workspace.Fetch(ctx, later.options()) }
	publishing := func(ctx context.Context) error {
		_, err := first.publishWithin(ctx, t)
		return err
	}
	for name, tc := range map[string]struct {
		lock string
		try  func(context.Context) error
	}{
		"to fetch, while it fetches":     {"fetch.lock", fetching},
		"to publish, while it fetches":   {"fetch.lock", publishing},
		"to publish, while it publishes": {"publish.lock", publishing},
	} {
		t.Run(name, func(t *testing.T) {
			lock, err := os.Create(filepath.Join(at.origin, "workspace", tc.lock))
			must(t, err)
			must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := tc.try(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
			})
			must(t, lock.Close())
		})
	}
	if got := strings.Join(later.logged, "\n"); got != "Waiting for another Run that prepares the workspace" {
		t.Errorf("logged %q", got)
	}
	must(t, fetching(t.Context()))
	must(t, publishing(t.Context()))
}

// Commands of one Run may do anything to the files while another prepares: nothing
// outside changes, nothing of what only runners see does, and it has an end.
func TestASiblingThatSpoilsTheStagingReachesNothing(t *testing.T) {
	s, at := serve(t, small), newShared(t)
	outside := t.TempDir()
	write(t, outside, map[string]string{"README.md": "precious"})
	given := workspace.Files{Dir: configMap(t, map[string]string{"README.md": "given", "run": "given"}), Path: "src"}
	staging := filepath.Join(at.dir, ".deckhand-fetch")
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			_ = os.RemoveAll(staging) // whatever comes of it
			target := []string{outside, at.origin, "src", "/"}[i%4]
			_ = os.Symlink(target, staging)
			_ = os.Symlink(outside, filepath.Join(at.dir, "src"))
			_ = os.Remove(filepath.Join(at.dir, "src"))
			_ = os.Remove(staging)
		}
	}()
	for range 30 {
		_ = workspace.Fetch(t.Context(), at.run(s.git()).options(given)) // it may fail
	}
	close(done)
	<-stopped
	if diff := cmp.Diff(map[string]string{"README.md": "precious"}, tree(t, outside)); diff != "" {
		t.Errorf("outside -want +got:\n%s", diff)
	}
	for name := range tree(t, at.origin) {
		if !strings.HasPrefix(name, "workspace/git/") && name != "workspace/fetch.lock" && name != "workspace/fetched.json" {
			t.Errorf("among what runners know lies %s", name)
		}
	}
}
