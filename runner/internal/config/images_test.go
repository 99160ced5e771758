package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/attachment"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// smallPNG begins like an image of 2 by 3 pixels, bombPNG like one of 100,000 by 100,000.
const (
	smallPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x02\x00\x00\x00\x03 the rest"
	bombPNG  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x01\x86\xa0\x00\x01\x86\xa0 the rest"
)

// What the agent and users read of files that are not shown.
const (
	tooLarge = "it has 200.0 MiB, and at most 3.75 MiB are sent. Make it smaller, or cut out what matters"
	bomb     = "it has 100000x100000 pixels, and at most 40 million are sent. Scale it down, or cut out what matters"
	denied   = "the policy of the Agent does not allow Read of it. Allow it there, or name another file"
)

// putImages puts an image, one that unpacks to gigabytes and one of 200 MiB into the workspace.
func (f *fixer) putImages() {
	f.t.Helper()
	f.put("docs/chart.png", smallPNG)
	f.put("bomb.png", bombPNG)
	f.put("large.png", smallPNG)
	if err := os.Truncate(filepath.Join(f.dir, "large.png"), 200<<20); err != nil {
		f.t.Fatal(err)
	}
}

// A Run whose prompt shows a file that cannot be shown ends before the model works without it.
func TestImagesOfAPrompt(t *testing.T) {
	cases := map[string]struct {
		path, when string
		want       string // of the message; empty: it is shown
	}{
		"an image":                        {path: "docs/chart.png", when: `tool == "Write"`},
		"a file that is not there":        {path: "docs/none.png", when: `tool == "Write"`, want: "spec.images[0] of the Run, docs/none.png, cannot be shown: File '/workspace/docs/none.png' not found"},
		"a text":                          {path: "a.txt", when: `tool == "Write"`, want: "it is not an image or a PDF"},
		"more pixels than are sent":       {path: "bomb.png", when: `tool == "Write"`, want: "spec.images[0] of the Run, bomb.png, cannot be shown: " + bomb},
		"200 MiB":                         {path: "large.png", when: `tool == "Write"`, want: "spec.images[0] of the Run, large.png, cannot be shown: " + tooLarge},
		"a file that is denied":           {path: "docs/chart.png", when: `tool == "Read"`, want: "the policy of the Agent does not allow Read of it"},
		"a link to a file that is denied": {path: "link.png", when: `tool == "Read" && args.path == "/workspace/docs/chart.png"`, want: "the policy of the Agent does not allow Read of it"},
		"a way out of the workspace":      {path: "../etc/passwd", when: `tool == "Write"`, want: "cannot be shown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixer(t, rule(tc.when, "Deny"))
			f.putImages()
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

// A Run whose prompt shows more than a request has ends before the model is asked.
func TestImagesOfAPromptThatAreTooLargeTogether(t *testing.T) {
	for n, want := range map[int]string{
		3: "", 4: "spec.images of the Run have 15.0 MiB up to spec.images[3], 3.png, and at most 12 MiB are sent in all. Show fewer or smaller files",
	} {
		f := newFixer(t)
		for i := range n {
			name := fmt.Sprintf("%d.png", i)
			f.put(name, smallPNG+strings.Repeat(name[:1], attachment.MaxBytes-len(smallPNG)))
			f.parts.Task.Images = append(f.parts.Task.Images, name)
		}
		out := f.attempt()
		if isRefused := out.Reason == task.ReasonMisconfigured; isRefused != (want != "") || out.Message != want && isRefused {
			t.Errorf("with %d images it ended %s: %s", n, out.Reason, out.Message)
		}
	}
}

// A file of a Message that cannot be shown is a line with what to do, and the others are shown.
func TestImagesOfAMessage(t *testing.T) {
	f := newFixer(t, rule(`tool == "Read" && args.path == "/workspace/src/a.png"`, "Deny"))
	f.putImages()
	f.put("src/a.png", smallPNG)
	f.engine = func(c *engine.Config) {
		said := &signals.Latest{}
		said.Update(func(s *signals.Signals) {
			s.Decisions = []task.Decision{{
				Name: "m", By: "ann", Type: task.DecisionMessage, Value: "Look.",
				Images: []string{"bomb.png", "large.png", "src/a.png", "docs/chart.png", "../etc/passwd"},
			}}
		})
		c.Signals, c.CanAsk = said, true
	}
	f.attempt()
	book, err := state.Replay(f.journal.Read())
	if err != nil {
		t.Fatal(err)
	}
	const want = "Look.\n[bomb.png is not shown: " + bomb + "]\n[large.png is not shown: " + tooLarge + "]\n[src/a.png is not shown: " + denied + "]"
	for _, s := range book.Session("").Steps {
		if strings.HasPrefix(s.Text(), "Look.") {
			if !strings.HasPrefix(s.Text(), want) || !strings.Contains(s.Text(), "[../etc/passwd is not shown: ") || !s.HasFiles() {
				t.Errorf("the message is %q", s.Text())
			}
			return
		}
	}
	t.Error("the agent does not read the message")
}

// The agent reads why a file that it Reads is not shown.
func TestImagesThatTheAgentReads(t *testing.T) {
	f := newFixer(t)
	f.putImages()
	got := f.run([]string{`Read {"path":"bomb.png"}`, `Read {"path":"large.png"}`, `Read {"path":"docs/chart.png"}`})
	for i, want := range []string{"[/workspace/bomb.png is not shown: " + bomb + "]", "/workspace/large.png is not shown: " + tooLarge, "/workspace/docs/chart.png has"} {
		if !strings.Contains(got[i], want) {
			t.Errorf("result %d is %q, want %q", i, got[i], want)
		}
	}
}
