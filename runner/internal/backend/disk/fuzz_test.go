package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Whatever path is asked for, through whatever link, nothing outside is read,
// made or changed.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{
		"f", "l", "l/secret", "l/../../outside/secret", "../outside/secret", "/etc/passwd", "d/l/../secret", `..\outside`, "~/x",
		"./l/./secret", "l//secret", "\x00", "d/../l/secret", "l/l/secret", TempDir, TempDir + "/x", strings.Repeat("d/", 3000),
	} {
		for _, target := range []string{"..", "../outside", "/", "d", "../root/../outside/secret", "l", "d/../../outside"} {
			f.Add(name, target)
		}
	}
	f.Fuzz(func(t *testing.T, name, target string) {
		g := newFixture(t)
		must(t, os.Mkdir(g.at("d"), 0o755))
		_ = os.Symlink(target, g.at("l"))
		_ = os.Symlink(filepath.Join("..", target), g.at("d/l"))
		for op, attempt := range g.attempts(name) {
			if got, _ := attempt(t.Context()); strings.Contains(got, secret) {
				t.Fatalf("%s of %q let out %q", op, name, got)
			}
		}
		infos, _ := g.List(t.Context(), name)
		found, _ := g.Glob(t.Context(), "**", name, nil)
		again, _ := g.Glob(t.Context(), name, ".", nil)
		for _, i := range append(append(infos, found.Items...), again.Items...) {
			if i.Size == int64(len(secret)) {
				t.Fatalf("%q shows the secret: %+v", name, i)
			}
		}
		if clean, err := backend.Clean(name); err == nil && (filepath.IsAbs(clean) || !filepath.IsLocal(clean)) {
			t.Fatalf("Clean(%q) = %q", name, clean)
		}
	})
}
