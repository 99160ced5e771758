package attempt

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/test/soak"
)

// What became of the effect of a call that must not be repeated.
const (
	effectReported    = "done and reported as done"
	effectInterrupted = "done and reported as interrupted"
	effectNotDone     = "not done and reported as interrupted"
)

// check checks the invariants of a Run that has ended.
func (r *soakRun) check() error {
	records, err := r.read()
	if err != nil {
		return err
	}
	r.checkEnd()
	r.checkRecords(records)
	r.checkDialogue(records)
	r.soak.Ended(r.checkEffects(records))
	return r.checkFiles()
}

// read reads the journal as the next attempt would. The lock of the last runner is gone.
func (r *soakRun) read() ([]journal.Record, error) {
	dir, err := journal.Open(journal.Options{Dir: filepath.Join(r.dir, "state"), RunUID: r.task.Run.UID, Attempt: 9999, Durable: true, Now: time.Now})
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	defer dir.Close()
	var records []journal.Record
	var replayed state.Run
	for rec, err := range dir.Read() {
		if err == nil {
			err = replayed.Apply(rec)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the journal: %w", err)
		}
		records = append(records, rec)
	}
	return records[:len(records)-1], nil // without the header of this reader
}

// checkEnd checks how the Run ended.
func (r *soakRun) checkEnd() {
	r.api.mu.Lock()
	defer r.api.mu.Unlock()
	if n := len(r.api.commits); n != 1 {
		r.violated(soak.TerminalOnce, "%d results are committed", n)
		return
	}
	if end := r.api.commits[0]; end.Reason != task.ReasonFinished || end.Text != r.answer() {
		r.violated(soak.TerminalOnce, "it ended %s: %s: %q", end.Reason, end.Message, end.Text)
	}
}

// checkRecords checks that every committed record is in the journal, once.
func (r *soakRun) checkRecords(records []journal.Record) {
	lines := 0
	for _, whole := range r.records {
		lines += strings.Count(whole, "\n")
	}
	if lines != len(records) {
		r.violated(soak.NothingRepeated, "%d records were committed, and the next attempt reads %d", lines, len(records))
	}
	seen, attempt := map[string]int{}, 0
	for _, rec := range records {
		if rec.Header != nil {
			if rec.Header.Attempt <= attempt {
				r.violated(soak.AttemptsOnce, "the journal of attempt %d follows that of attempt %d", rec.Header.Attempt, attempt)
			}
			attempt = rec.Header.Attempt
		}
		if rec.Step != nil {
			seen[fmt.Sprintf("step %d of session %q", rec.Step.Seq, rec.Session)]++
		}
	}
	for what, n := range seen {
		if n > 1 {
			r.violated(soak.NothingRepeated, "%s is recorded %d times", what, n)
		}
	}
}

// checkDialogue checks that the session has each turn of the script once, and that no result
// that the model was told changed later.
func (r *soakRun) checkDialogue(records []journal.Record) {
	turn := 0
	for _, rec := range records {
		if rec.Session != "" || rec.Step == nil || rec.Step.Role != step.RoleAssistant {
			continue
		}
		if turn == len(r.turns) {
			r.violated(soak.NothingRepeated, "there is a turn after the last: %s", rec.Step.Text())
			return
		}
		want := r.turns[turn]
		for i, c := range rec.Step.Calls {
			if i >= len(want.Calls) || string(c.Args) != string(want.Calls[i].Args) {
				r.violated(soak.NothingRepeated, "turn %d calls %s %s", turn, c.Name, c.Args)
			}
		}
		if len(rec.Step.Calls) != len(want.Calls) || rec.Step.Text() != want.Text {
			r.violated(soak.NothingRepeated, "turn %d is %q with %d calls", turn, rec.Step.Text(), len(rec.Step.Calls))
		}
		turn++
	}
	if turn != len(r.turns) {
		r.violated(soak.NothingRepeated, "there are %d turns, want %d", turn, len(r.turns))
	}
	r.checkRequests()
}

// checkRequests checks that the requests to the model of the Run only grow.
func (r *soakRun) checkRequests() {
	told := map[string]string{}
	for _, req := range r.model.Requests() {
		if req.Model != "boss" {
			continue
		}
		turn := 0
		for _, m := range req.Messages {
			if m.Role == "assistant" {
				turn++
			}
			if m.Role != "tool" {
				continue
			}
			id := fmt.Sprintf("%s of turn %d", m.ToolCallID, turn)
			if was, known := told[id]; known && was != *m.Content {
				r.violated(soak.NothingRepeated, "the result of %s was %q and is %q", id, was, *m.Content)
			}
			told[id] = *m.Content
		}
	}
}

// checkEffects compares what happened outside with what the journal reports of it.
func (r *soakRun) checkEffects(records []journal.Record) map[string]int {
	intents, results := map[string]bool{}, map[string]step.Step{}
	calls := map[string]string{} // the id of the effect of each call
	for _, rec := range records {
		switch {
		case rec.Intent != nil && rec.Intent.CallID != "":
			intents[effectOf(string(rec.Intent.Args))] = true
		case rec.Kind == journal.KindResult:
			results[calls[rec.Step.CallID]] = *rec.Step
		case rec.Step != nil:
			for _, c := range rec.Step.Calls {
				calls[c.ID] = effectOf(string(c.Args))
			}
		}
	}
	r.effects.mu.Lock()
	defer r.effects.mu.Unlock()
	for id := range r.effects.counts {
		if !intents[id] {
			r.violated(soak.NothingRepeated, "%s happened without an intent", id)
		}
	}
	for _, wrong := range r.effects.wrong {
		r.violated(soak.NothingRepeated, "%s", wrong)
	}
	for _, id := range r.again {
		if res := results[id]; r.effects.counts[id] < 1 || res.IsError {
			r.violated(soak.NothingRepeated, "%s, which may be repeated, happened %d times and is reported as %q", id, r.effects.counts[id], res.Text())
		}
	}
	became := map[string]int{}
	for _, id := range r.once {
		if end := r.endOfEffect(id, results); end != "" {
			became[end]++
		}
	}
	return became
}

// endOfEffect is what became of an effect that must not be repeated.
func (r *soakRun) endOfEffect(id string, results map[string]step.Step) string {
	n, text := r.effects.counts[id], results[id].Text()
	isInterrupted := strings.Contains(text, "Interrupted: the runner was lost")
	switch {
	case n == 1 && strings.Contains(text, id+" is done."):
		return effectReported
	case n == 1 && isInterrupted:
		return effectInterrupted
	case n == 0 && isInterrupted:
		return effectNotDone
	}
	r.violated(soak.NothingRepeated, "%s happened %d times and is reported as %q", id, n, text)
	return ""
}

// effectOf is the id in the arguments of a call.
func effectOf(args string) string {
	_, rest, _ := strings.Cut(args, `"id":"`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// checkFiles checks that kills leave the files that the Run wrote, whole, and no others.
func (r *soakRun) checkFiles() error {
	return filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(r.dir, path)
		if err != nil {
			return err
		}
		if id, is := strings.CutPrefix(strings.TrimSuffix(name, ".txt"), "workspace/"); is {
			text, err := os.ReadFile(path)
			if string(text) != id+"\n" {
				r.violated(soak.NothingRepeated, "%s has the content %q", name, text)
			}
			return err
		}
		if !stateFiles.MatchString(name) {
			r.violated(soak.NothingLeft, "the file %s is left", name)
		}
		return nil
	})
}

// stateFiles are the files that a Run has beside its workspace.
var stateFiles = regexp.MustCompile(`^(state/(journal-[0-9]{4}\.jsonl|models\.json(\.new)?|lock|reserve|events.*)|snapshot\.json|termination-[0-9]+)$`)
