package cli

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// What is wrong with a local Run itself is tested in package local.
func TestFlagsOfLocalRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"--local with --from":     {[]string{"--local", "-f", "x", "--from", "run/a"}, "--from names something in a cluster"},
		"--local with -o":         {[]string{"--local", "-f", "x", "-o", "json"}, "print the events with --json"},
		"flags of --local":        {[]string{"a", "--model-key", "X"}, "are for --local"},
		"two files for a cluster": {[]string{"-f", "a", "-f", "b"}, "-f names one file with a Run"},
		"--json without --wait":   {[]string{"a", "--json"}, "add --wait, or --local"},
		"--local without files":   {[]string{"--local"}, "name the files with the manifests"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if code := s.run(t, append([]string{"run"}, tc.args...)...); code != exit.Usage || !strings.Contains(s.err.String(), tc.want) {
				t.Errorf("exit code %d: %s", code, s.err.String())
			}
		})
	}
}
