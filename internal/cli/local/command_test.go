package local

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

func TestTheProgramExplainsItself(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"help":                 {[]string{"--help"}, exit.OK, "-C, --directory string       The directory that the agent works in"},
		"version":              {[]string{"--version"}, exit.OK, "v1.2.3"},
		"an unknown flag":      {[]string{"--endpont", "x"}, exit.Usage, "did you mean --endpoint?"},
		"a value that is none": {[]string{"--steps", "x"}, exit.Usage, "--steps x: write a whole number"},
		"a color":              {[]string{"-f", "x", "--color", "red"}, exit.Usage, "use auto, always or never"},
		"a text alone":         {[]string{"Fix it"}, exit.Usage, "as in deckhand-local -f FILE TEXT"},
		"three words":          {[]string{"-f", "x", "worker", "do", "it"}, exit.Usage, "Write the text in quotes"},
		"no such file":         {[]string{"-f", "none.yaml", "-C", t.TempDir()}, exit.Error, "name a file, a directory, or - for standard input"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if code := s.run(t, tc.args...); code != tc.code || !strings.Contains(s.text(), tc.want) {
				t.Errorf("exit code %d, want %d and %q in:\n%s", code, tc.code, tc.want, s.text())
			}
			if strings.Contains(s.text(), "--local") && !strings.Contains(s.text(), "run --local does") {
				t.Errorf("it names a flag that it does not have:\n%s", s.text())
			}
		})
	}
}
