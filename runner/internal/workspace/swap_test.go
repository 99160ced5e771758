package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// restless does something again and again until the test has done its part.
func restless(t *testing.T, do func(i int)) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				do(i)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// Whatever is swapped meanwhile, nothing outside is read, nothing hangs, and the
// publishing ends in a commit or with a sentence.
func TestSwapsDuringTheWalk(t *testing.T) {
	cases := map[string]func(t *testing.T, c *trap, dir string) func(i int){
		"a file for a link to a file outside": func(t *testing.T, c *trap, dir string) func(int) {
			return swapping(t, dir, "x", func(at string) error { return os.WriteFile(at, []byte("mine"), 0o600) }, func(at string) error { return os.Symlink(c.secret, at) })
		},
		"a tracked file for a link to a file outside": func(t *testing.T, c *trap, dir string) func(int) {
			return swapping(t, dir, "README.md", func(at string) error { return os.WriteFile(at, []byte("mine"), 0o600) }, func(at string) error { return os.Symlink(c.secret, at) })
		},
		"a directory for a link to one outside": func(t *testing.T, c *trap, dir string) func(int) {
			return swapping(t, dir, "d", func(at string) error { return os.Mkdir(at, 0o700) }, func(at string) error { return os.Symlink(filepath.Dir(c.secret), at) })
		},
		"a file for a pipe": func(t *testing.T, _ *trap, dir string) func(int) {
			return swapping(t, dir, "x", func(at string) error { return os.WriteFile(at, []byte("mine"), 0o600) }, func(at string) error { return syscall.Mkfifo(at, 0o600) })
		},
		"a directory for a pipe": func(t *testing.T, _ *trap, dir string) func(int) {
			return swapping(t, dir, "d", func(at string) error { return os.Mkdir(at, 0o700) }, func(at string) error { return syscall.Mkfifo(at, 0o600) })
		},
		"a file that grows and shrinks": func(t *testing.T, _ *trap, dir string) func(int) {
			return func(i int) { must(t, os.Truncate(filepath.Join(dir, "README.md"), int64(i%5)*100_000)) }
		},
	}
	for name, arrange := range cases {
		t.Run(name, func(t *testing.T) {
			c := newTrap(t)
			s, p := fetched(t)
			stop := restless(t, arrange(t, c, p.dir))
			defer stop()
			for i := range 15 {
				write(t, p.dir, map[string]string{"work": fmt.Sprint(i)})
				_, err := p.publish(t)
				if err != nil && !strings.Contains(err.Error(), "it changes while it is read") {
					t.Fatalf("round %d: %v", i, err)
				}
			}
			s.withhold(t)
		})
	}
}

// swapping puts one thing and another in turn under one name, each at once.
func swapping(t *testing.T, dir, name string, one, other func(at string) error) func(int) {
	t.Helper()
	beside := t.TempDir()
	return func(i int) {
		at, aside := filepath.Join(dir, name), filepath.Join(beside, fmt.Sprint(i))
		next := one
		if i%2 == 0 {
			next = other
		}
		must(t, next(aside))
		if info, err := os.Lstat(at); err == nil && info.IsDir() || i%2 == 1 {
			_ = os.Remove(at)
		}
		if err := os.Rename(aside, at); err != nil {
			_ = os.Remove(at)
			_ = os.Remove(aside)
		}
	}
}
