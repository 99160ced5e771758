package files

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

// canonical is the canonical form of a call that is written as "Read {…}", or why
// it has none.
func (b bench) canonical(line string) string {
	b.t.Helper()
	name, args, _ := strings.Cut(line, " ")
	for _, one := range b.Tools() {
		if one.Name == name {
			tooltest.Canonical(b.t, one, args)
			got, refused := one.CanonicalArgs(b.t.Context(), json.RawMessage(args))
			if refused != nil {
				return "Error: " + refused.Message
			}
			return string(got)
		}
	}
	b.t.Fatalf("no tool for %q", line)
	return ""
}

func TestCanonicalArguments(t *testing.T) {
	b := newBench(t)
	b.put("src/a.go", "")
	b.put(".github/workflows/ci.yml", "")
	for name, target := range map[string]string{"l": "src", "ci": ".github/workflows", "file": "src/a.go", "out": "/etc", "up": "../etc", "abs": "/workspace/.github", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]string{
		`Read {"path":"/workspace/src/a.go"}`:                      `{"path":"/workspace/src/a.go"}`,
		`Read {"path":"l//a.go/","limit":7}`:                       `{"limit":7,"path":"/workspace/src/a.go"}`,
		`Write {"path":"file","content":"<x>"}`:                    `{"content":"<x>","path":"/workspace/src/a.go"}`,
		`Write {"path":"ci/new/x.yml","content":""}`:               `{"content":"","path":"/workspace/.github/workflows/new/x.yml"}`,
		`Edit {"path":"./file","old_string":"a","new_string":"b"}`: `{"new_string":"b","old_string":"a","path":"/workspace/src/a.go"}`,
		`Ls {}`:                      `{"path":"/workspace"}`,
		`Ls {"path":"ci"}`:           `{"path":"/workspace/.github/workflows"}`,
		`Glob {"pattern":"*.go"}`:    `{"path":"/workspace","pattern":"*.go"}`,
		`Glob {"pattern":"/*.go"}`:   `{"path":"/workspace","pattern":"/*.go"}`,
		`Glob {"pattern":"l/*.go"}`:  `{"path":"/workspace/src","pattern":"/*.go"}`,
		`Glob {"pattern":"./ci/**"}`: `{"path":"/workspace/.github/workflows","pattern":"/**"}`,
		`Glob {"pattern":"ci/"}`:     `{"path":"/workspace/.github/workflows","pattern":"/**"}`,
		`Glob {"pattern":"/workspace/ci/*.yml","path":"src"}`: `{"path":"/workspace/.github/workflows","pattern":"/*.yml"}`,
		`Glob {"pattern":"workflows/*","path":".github"}`:     `{"path":"/workspace/.github/workflows","pattern":"/*"}`,
		`Glob {"pattern":"{ci,l}/*"}`:                         `{"path":"/workspace","pattern":"{ci,l}/*"}`,
		`Glob {"pattern":"\\*/x"}`:                            `{"path":"/workspace","pattern":"\\*/x"}`,
		`Glob {"pattern":"/workspace/\\*/x"}`:                 `{"path":"/workspace","pattern":"/workspace/\\*/x"}`,
		`Grep {"pattern":"x","path":"file"}`:                  `{"path":"/workspace/src/a.go","pattern":"x"}`,
		`Grep {"pattern":"ci/x"}`:                             `{"path":"/workspace","pattern":"ci/x"}`,
		`Grep {"pattern":"x","glob":"ci/*.yml"}`:              `{"glob":"/*.yml","path":"/workspace/.github/workflows","pattern":"x"}`,
		`Glob {"pattern":"../*"}`:                             "Error: Path traversal not allowed: ../*",
		`Glob {"pattern":"x/*","path":"../etc"}`:              "Error: Path traversal not allowed: ../etc",
		`Read {"path":"../etc/passwd"}`:                       "Error: Path traversal not allowed: ../etc/passwd",
		`Read {"path":"up/passwd"}`:                           "Error: Path 'up/passwd' leads outside /workspace",
		`Read {"path":"out/passwd"}`:                          "Error: Path 'out/passwd' leads through a link to an absolute path, which is not followed",
		`Write {"path":"abs/x.yml","content":""}`:             "Error: Path 'abs/x.yml' leads through a link to an absolute path, which is not followed",
		`Read {"path":"loop"}`:                                `Error: Not a usable path: "loop"`,
		`Ls {"path":"/etc"}`:                                  "Error: Path '/etc' is outside /workspace",
	} {
		if got := b.canonical(line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
