package render_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Helm and kubectl would change the same objects, and each would undo what the other did.
func TestInstallersRefuseEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		installer, installed string // a line for each Deployment: its namespace, and who manages it
		want                 string // part of the message; empty: it installs
	}{
		"kubectl in an empty cluster":  {"kubectl", "", ""},
		"Helm in an empty cluster":     {"Helm", "", ""},
		"kubectl again":                {"kubectl", "deckhand-system \n", ""},
		"Helm again":                   {"Helm", "deckhand-system Helm\n", ""},
		"kubectl after Helm":           {"kubectl", "team-a Helm\n", "Helm installed Deckhand in the namespace team-a"},
		"Helm after kubectl":           {"Helm", "deckhand-system \n", "Deckhand is in the namespace deckhand-system of this cluster without Helm"},
		"kubectl where both installed": {"kubectl", "deckhand-system \nteam-a Helm\n", "in the namespace team-a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			kubectl := "#!/bin/sh\nprintf '" + strings.ReplaceAll(tc.installed, "\n", `\n`) + "'\n"
			if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(kubectl), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
			out, err := exec.CommandContext(t.Context(), "../../hack/installer", tc.installer).CombinedOutput()
			if (err != nil) != (tc.want != "") || !strings.Contains(string(out), tc.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
