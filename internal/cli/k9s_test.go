package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var (
	k9sCommand  = regexp.MustCompile(`deckhand ([^|]*)`)
	k9sVariable = strings.NewReplacer(`"`, "", "$", "")
)

// Each key of k9s calls a command as the command line accepts it. The fields are those that
// k9s knows (internal/config/json/schemas/plugins.json in its repository).
func TestKeysOfK9sCallCommandsThatExist(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "k9s-plugins.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]struct {
			ShortCut    string   `json:"shortCut"`
			Description string   `json:"description"`
			Scopes      []string `json:"scopes"`
			Command     string   `json:"command"`
			Args        []string `json:"args"`
			Background  bool     `json:"background"`
			Confirm     bool     `json:"confirm"`
		} `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for name, plugin := range file.Plugins {
		if other, taken := keys[plugin.ShortCut]; taken || plugin.ShortCut == "" || plugin.Description == "" || len(plugin.Scopes) != 1 {
			t.Errorf("%s: %+v, and %s has the key %q", name, plugin, other, plugin.ShortCut)
		}
		keys[plugin.ShortCut] = name
		line := k9sCommand.FindStringSubmatch(plugin.Command + " " + strings.Join(plugin.Args, " "))
		if line == nil {
			t.Errorf("%s does not call kubectl deckhand", name)
			continue
		}
		root := newRoot(NewFactory(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}), "v1.2.3")
		command, args, err := root.Find(strings.Fields(k9sVariable.Replace(line[1])))
		if err == nil {
			err = command.ParseFlags(args)
		}
		if err == nil {
			err = command.ValidateArgs(command.Flags().Args())
		}
		if err != nil || command == root {
			t.Errorf("%s calls %q: %v", name, line[1], err)
		}
	}
	if len(keys) < 5 {
		t.Errorf("the file has only the keys %v", keys)
	}
}
