//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

var (
	useIt = regexp.MustCompile("(?ms)^## Use it$(.*?)^## ")
	// savedOrTyped are what a reader of the page saves as a file, and what he types.
	savedOrTyped = regexp.MustCompile("(?ms)(?:[Ss]ave [^`]*`([^`]+)`:\n\n)?^```(yaml|sh)\n(.*?)^```$")
)

// README.md, saved and typed from top to bottom, works. The model of the page is in the namespace, in
// place of the provider's.
func TestReadme(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	script := modeltest.Script{Models: map[string]modeltest.Dialogue{"gpt-5-mini": {After: modeltest.Repeat, Turns: []modeltest.Turn{
		does(call("Write", args{"path": "haiku.txt", "content": "Harbor lamps at night\n"})),
		says("The haiku is in haiku.txt."),
	}}}}
	if err := serve(t.Context(), p.name, script, nil); err != nil {
		t.Fatal(err)
	}
	section := useIt.FindStringSubmatch(readFile(t, "README.md"))
	if section == nil {
		t.Fatal("README.md does not say how to use it")
	}
	dir := t.TempDir()
	shell := p.shellIn(dir)
	printed := ""
	for _, block := range savedOrTyped.FindAllStringSubmatch(section[1], -1) {
		file, kind, text := block[1], block[2], block[3]
		switch {
		case kind == "yaml" && file == "":
			t.Fatalf("the page does not say as what to save %s", text)
		case kind == "yaml":
			text = strings.Replace(text, "provider: OpenAI ", "endpoint: http://"+modelsName+"/gpt\n  provider: OpenAI ", 1)
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case strings.Contains(text, "--local"): // for a laptop with a key
		default:
			printed += shell(text)
		}
	}
	for _, want := range []string{
		"Checked 2 objects: 0 warnings, no errors", "run.deckhand.dev/haiku Finished", "Copied 1 file, 22 bytes", "run.deckhand.dev/haiku-2 condition met",
		"The haiku is in haiku.txt.", "writer",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("the terminal lacks %q: %s", want, printed)
		}
	}
	if copied, err := os.ReadFile(filepath.Join(dir, "haiku.txt")); err != nil || string(copied) != "Harbor lamps at night\n" {
		t.Errorf("the copy of the file is %q: %v", copied, err)
	}
}
