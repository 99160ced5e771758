package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A shell calls the hidden command __complete. The line that begins with a colon says whether it
// may complete files too, and whether a space follows.
func TestShellsCompleteNames(t *testing.T) {
	const noFiles, noSpaceNoFiles, files = ":4\n", ":6\n", ":0\n"
	for line, want := range map[string]string{
		"logs":             "fix\n" + noFiles,
		"logs fix":         noFiles,
		"pause fix":        "fix\n" + noFiles,
		"approve":          "fix\n" + noFiles,
		"approve fix":      callID + "\ns2c1\nlimit-steps-30\n" + noFiles,
		"approve fix x":    noFiles,
		"approve unknown":  noFiles,
		"cp":               "fix:\n" + noSpaceNoFiles,
		"cp fix:a":         files,
		"hosts":            "a.b\nfixer\npoet\n" + noFiles,
		"run":              "a.b\nfixer\npoet\nworkflow/release\n" + noFiles,
		"run --from":       "run/fix\nschedule/nightly\n" + noFiles,
		"why":              "fix\nagent/a.b\nagent/fixer\nagent/poet\nworkflow/release\nschedule/nightly\n" + noFiles,
		"continue":         "fix\n" + noFiles,
		"fork fix":         noFiles,
		"fork fix --agent": "a.b\nfixer\npoet\n" + noFiles,
		"list --agent":     "a.b\nfixer\npoet\nworkflow/release\n" + noFiles,
		"list --namespace": "team-a\n" + noFiles,
	} {
		s := newSession(t, runWithRequests(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, &v1alpha1.Schedule{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "nightly"}})
		if code := s.run(t, append(append([]string{"__complete"}, strings.Fields(line)...), "")...); code != exit.OK {
			t.Errorf("%q: exit code %d: %s", line, code, s.text())
		}
		if diff := cmp.Diff(want, s.out.String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", line, diff)
		}
	}
}

// The output of completion is sourced by a shell, so that the help would hide the error.
func TestCompletionOfAnUnknownShellIsRefused(t *testing.T) {
	for line, want := range map[string]string{
		"completion":          "the name of a shell is missing: write one of bash, fish, powershell, zsh",
		"completion tcsh":     `there is no completion for "tcsh": write one of bash`,
		"completion bash zsh": `unknown argument "zsh"`,
	} {
		s := newSession(t)
		if code := s.run(t, strings.Fields(line)...); code != exit.Usage || s.out.Len() > 0 || !strings.Contains(s.err.String(), want) {
			t.Errorf("%q: exit code %d, printed %q: %s", line, code, s.out.String(), s.err.String())
		}
	}
	s := newSession(t)
	if code := s.run(t, "completion", "zsh"); code != exit.OK || !strings.Contains(s.out.String(), "compdef") {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}
