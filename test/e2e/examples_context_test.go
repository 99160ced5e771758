//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// chronicleTurns are turns that each write a year of the chronicle, long enough that a
// small window is full after some of them.
func chronicleTurns(from, to int) []modeltest.Turn {
	var list []modeltest.Turn
	for year := from; year <= to; year++ {
		text := fmt.Sprintf("%d. ", year) + strings.Repeat("Ships came in and ships went out. ", 160)
		list = append(list, does(call("Write", args{"path": fmt.Sprintf("%d.txt", year), "content": text})))
	}
	return list
}

// harborLog is a page too large for a session, in which one line is not like
// the others.
func harborLog() string {
	lines := strings.Repeat("a pilot boat came in and went out again, nothing else to tell of it\n", 1000)
	return lines + "the Aurora came in at dawn\n" + lines
}

// startPage is the image of images.yaml as the Messages API is sent it.
const startPage = `"iVBORw0KGgoAAAANSUhEUgAAACAAAAAUCAIAAABj86gYAAAAK0lEQVR42mPQsImiKWIA4jtRGjRCoxYQa8FXmoFRC0YtGLVg1IKRZAFNEQCzKqRwqtuXEgAAAABJRU5ErkJggg=="`

// contextExamples are about what a model sees, and where the rest is.
var contextExamples = map[string]example{
	"compaction.yaml": {
		models: map[string]modeltest.Dialogue{
			"llama3.2":                     {Turns: chronicleTurns(1900, 1910)},
			"llama3.2?about to become too": {Turns: []modeltest.Turn{says("SUMMARY: the first years are written.")}, After: modeltest.Repeat},
			"llama3.2?SUMMARY: the first":  {Turns: []modeltest.Turn{says("The chronicle is written.")}, After: modeltest.Repeat},
		},
		check: func(s *exampleFixture) {
			if got := s.says("compaction"); got != "The chronicle is written." {
				s.t.Errorf("the answer is %q", got)
			}
			if got := len(s.events("compaction", step.EventCompacted)); got != 1 {
				s.t.Fatalf("it was compacted %d times", got)
			}
			requests := s.requestsWith("POST models/small/")
			last := requests[len(requests)-1].Body
			s.has("the last request", last, "Write the years 1900 to 1910.", "SUMMARY: the first years")
			s.lacks("the last request", last, "1900. Ships")
			if before := requests[len(requests)-2].Body; len(last) >= len(before) {
				s.t.Errorf("the request grew from %d to %d bytes", len(before), len(last))
			}
			s.has("the log", s.log(s.t.Context(), "compaction-1"), "1900. Ships") // nothing is lost
		},
	},
	"large-results.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("HTTPRequest", args{"method": "GET", "url": "http://pages/harbor.log"})),
			does(call("Grep", args{"pattern": "Aurora", "path": "/results", "output_mode": "content"})),
			does(call("Read", args{"path": "/results/s2c1", "offset": 1000, "limit": 12})),
			says("It is in: {{.LastToolResult}}"),
		)},
		pages: map[string]page{"pages/harbor.log": {Body: harborLog()}},
		check: func(s *exampleFixture) {
			s.has("the answer", s.says("large-results"), "the Aurora came in at dawn")
			got := s.results("large-results", "HTTPRequest")[0].Text()
			s.has("the result", got, "/results/s2c1", "pilot boat")
			if s.lacks("the result", got, "Aurora"); len(got) > 4000 {
				s.t.Errorf("the result has %d bytes", len(got))
			}
			s.has("the search", s.results("large-results", "Grep")[0].Text(), "/results/s2c1:100")
		},
	},
	"places-for-files.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(
				call("Write", args{"path": "/tmp/draft.txt", "content": "Dear Ann"}),
				call("Write", args{"path": "/memories/people.md", "content": "The pilot is called Ann.\n"}),
				call("Write", args{"path": "/workspace/note.txt", "content": "Dear Ann, the tide turns at noon."}),
			),
			does(
				call("Recall", args{"query": "pilot"}),
				call("Read", args{"path": "/tmp/draft.txt"}),
				call("Write", args{"path": "/results/x", "content": "not mine"}),
			),
			says("Done."),
		)},
		check: func(s *exampleFixture) {
			s.says("places-for-files")
			progress := s.runs["places-for-files"].Status.Progress
			if len(progress.Result.Files) != 1 || progress.Result.Files[0].Path != "/workspace/note.txt" {
				s.t.Errorf("files are %+v", progress.Result.Files)
			}
			s.has("what is remembered", s.results("places-for-files", "Recall")[0].Text(), "/memories/people.md", "Ann")
			s.has("the draft", s.results("places-for-files", "Read")[0].Text(), "Dear Ann")
			if progress.Counts.Errors != 1 {
				s.t.Errorf("/results may be written: %+v", progress.Counts)
			}
		},
	},
	"images.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Read", args{"path": "designs/start-page.png"})),
			does(call("Write", args{"path": "index.html", "content": "<header>"})),
			says("It is written."),
		)},
		check: func(s *exampleFixture) {
			s.says("images")
			requests := s.requestsWith("POST models/images-claude/")
			s.has("the first request", requests[0].Body, "Write index.html as the image shows it.", startPage)
			if again := strings.Count(requests[1].Body, startPage); again != 2 {
				s.t.Errorf("the second request has the image %d times, want that of the prompt and that of Read", again)
			}
			shown := s.log(s.t.Context(), "images-1")
			s.has("the log", shown, "/workspace/designs/start-page.png", `"width":32`)
			s.lacks("the log", shown, startPage)
		},
	},
	"skills.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Read", args{"path": "/skills/tide-report/SKILL.md"})),
			does(call("Read", args{"path": "/skills/tide-report/tides.csv"}), call("Write", args{"path": "/skills/tide-report/tides.csv", "content": "none"})),
			says("Brest, 04:12, 10:31"),
		)},
		check: func(s *exampleFixture) {
			s.says("skills")
			s.has("the first request", s.requestsWith("POST models/skills-claude/")[0].Body, "- /skills/tide-report/SKILL.md: Reports the tides of a harbor.")
			s.has("the skill", s.results("skills", "Read")[0].Text(), "Look up the harbor in tides.csv")
			s.has("the table", s.results("skills", "Read")[1].Text(), "Brest,04:12,10:31")
			s.has("the write", s.results("skills", "Write")[0].Text(), "read-only")
		},
	},
	"workspace-instructions.yaml": {
		models: map[string]modeltest.Dialogue{"claude-sonnet-5": turns(
			does(call("Read", args{"path": "AGENTS.md"})),
			says("Clockwise."),
		)},
		check: func(s *exampleFixture) {
			s.says("workspace-instructions")
			s.has("the first request", s.requestsWith("POST models/workspace-instructions-claude/")[0].Body, "How is a rope coiled here?", "Coil every rope clockwise.")
			s.has("the file", s.results("workspace-instructions", "Read")[0].Text(), "Coil every rope clockwise.")
		},
	},
}
