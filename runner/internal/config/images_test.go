package config_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// smallPNG begins like an image of 2 by 3 pixels, bombPNG like one of 60,000 by 60,000.
const (
	smallPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03 the rest"
	bombPNG  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\xea\x60\x00\x00\xea\x60 the rest"
)

// A Run whose prompt shows a file that cannot be shown ends before the model works without it.
func TestImagesOfAPrompt(t *testing.T) {
	cases := map[string]struct {
		path, when string
		want       string // of the message; empty: it is shown
	}{
		"an image":                        {path: "docs/chart.png", when: `tool == "Write"`},
		"a file that is not there":        {path: "docs/none.png", when: `tool == "Write"`, want: "spec.images[0] of the Run, docs/none.png, cannot be shown: File '/workspace/docs/none.png' not found"},
		"a text":                          {path: "a.txt", when: `tool == "Write"`, want: "it is not an image or a PDF"},
		"more pixels than are sent":       {path: "bomb.png", when: `tool == "Write"`, want: "it has 60000x60000 pixels"},
		"a file that is denied":           {path: "docs/chart.png", when: `tool == "Read"`, want: "the policy of the Agent does not allow Read of it"},
		"a link to a file that is denied": {path: "link.png", when: `tool == "Read" && args.path == "/workspace/docs/chart.png"`, want: "the policy of the Agent does not allow Read of it"},
		"a way out of the workspace":      {path: "../etc/passwd", when: `tool == "Write"`, want: "cannot be shown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixer(t, rule(tc.when, "Deny"))
			f.put("docs/chart.png", smallPNG)
			f.put("bomb.png", bombPNG)
			f.put("a.txt", "hello")
			f.link("docs/chart.png", "link.png")
			f.parts.Task.Images = []string{tc.path}
			out := f.attempt()
			if tc.want != "" {
				if out.Reason != task.ReasonMisconfigured || !strings.Contains(out.Message, tc.want) {
					t.Errorf("ended %s: %s", out.Reason, out.Message)
				}
				return
			}
			book, err := state.Replay(f.journal.Read())
			if err != nil {
				t.Fatal(err)
			}
			first := book.Session("").Steps[0]
			if !first.HasFiles() || first.Parts[1].File.Name != "/workspace/docs/chart.png" {
				t.Errorf("ended %s %s; the first step is %+v", out.Reason, out.Message, first)
			}
		})
	}
}
