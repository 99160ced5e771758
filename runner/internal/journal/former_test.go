package journal

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestANoticeOfBeforeIsRead(t *testing.T) {
	for _, written := range []string{"owed", "notice"} {
		r, err := decodeRecord([]byte(`{"seq":2,"kind":"mark","mark":{"type":"` + written + `","text":"a job is gone"}}`))
		if err != nil || r.Mark == nil || r.Mark.Type != MarkNotice || r.Mark.Text != "a job is gone" {
			t.Errorf("%s is read as %+v: %v", written, r.Mark, err)
		}
	}
	if data, err := json.Marshal(Mark{Type: MarkNotice}); err != nil || string(data) != `{"type":"notice"}` {
		t.Errorf("a notice is written as %s: %v", data, err)
	}
}

// What commands of an attempt of before printed is found, and what a rollback left beside it stays.
func TestCommandsDir(t *testing.T) {
	for name, tc := range map[string]struct {
		folders []string
		file    string // in the folder that is returned
	}{
		"a new Run":              {},
		"a Run of before":        {[]string{"hands"}, "of hands"},
		"a Run of today":         {[]string{"commands"}, "of commands"},
		"a Run after a rollback": {[]string{"commands", "hands"}, "of commands"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			for _, folder := range tc.folders {
				if err := os.MkdirAll(filepath.Join(state, folder, "of "+folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			dir := CommandsDir(state)
			if _, err := os.Stat(filepath.Join(dir, tc.file)); filepath.Base(dir) != "commands" || tc.file != "" && err != nil {
				t.Errorf("the folder is %s: %v", dir, err)
			}
		})
	}
}
